"""Random jobs over families, methods, regimes, kernels and optimizers, the same for the same seed.

usage: grid.py COUNT SEED > jobs.jsonl

Each line is {"id", "config", "job"}: a config of families.json, and the plan in the words of membill's job file."""
import json
import pathlib
import random
import sys

FAMILIES = json.loads(pathlib.Path(__file__).with_name("families.json").read_text(encoding="utf-8"))
FUSED_QKV = {"gpt2": "c_attn", "gpt_neox": "query_key_value", "bloom": "query_key_value", "falcon": "query_key_value", "phi3": "qkv_proj"}
MIXTURES = ("mixtral", "qwen3_moe")
ONLY_EAGER = ("bloom", "gemma2")
LIGER = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "granite", "olmo2")
SQUARE = ("eager", "sdpa-math")  # they keep seq x seq scores: shorter sequences

METHODS = {"full": 5, "lora": 4, "qlora": 4, "dora": 1}
REGIMES = (("fp32", "fp32"), ("fp32", "amp-bf16"), ("bf16", "amp-bf16"), ("bf16", "pure-bf16"), ("fp32", "amp-fp16"))
CHECKPOINTING = (("none", 4), ("full", 4), ({"mode": "full", "reentrant": True}, 2))
KERNELS = {"flash": 6, "eager": 3, "mem-efficient": 1, "sdpa-math": 1}
OPTIMIZERS = ((("adamw", "foreach"), 8), (("adamw", "fused"), 4), (("adamw", "loop"), 2), (("sgd", "foreach"), 1),
              (("sgd-momentum", "foreach"), 1), (("adafactor", "loop"), 2), (("adamw-8bit", "loop"), 4),
              (("paged-adamw-8bit", "loop"), 2), (("adagrad", "foreach"), 1), (("rmsprop", "foreach"), 1), (("lion-8bit", "loop"), 1),
              (("paged-adamw-32bit", "loop"), 1))


def pick(rng, choices):
    """One of {value: weight} or of ((value, weight), ...)."""
    pairs = list(choices.items() if isinstance(choices, dict) else choices)
    return rng.choices([value for value, _ in pairs], [weight for _, weight in pairs])[0]


def choose_method(rng, kind):
    method = pick(rng, METHODS)
    quantizable = kind not in (*MIXTURES, "gpt2")  # fused experts and Conv1D are no torch.nn.Linear
    return method if quantizable or method not in ("qlora", "dora") else "lora"


def choose_regime(rng, method):
    if method == "qlora":
        return "nf4", rng.choice(["amp-bf16", "pure-bf16"])
    weights, precision = rng.choice(REGIMES)
    return ("fp16" if method == "lora" and precision == "amp-fp16" else weights), precision


def choose_kernel(rng, kind, precision):
    kernel = pick(rng, KERNELS)
    if kind in ONLY_EAGER:
        return "eager"
    return "mem-efficient" if kernel == "flash" and precision == "fp32" else kernel


def choose_adapter(rng, kind):
    targets = rng.choice([[FUSED_QKV[kind]] if kind in FUSED_QKV else ["q_proj", "v_proj"], "all-linear"])
    if kind in MIXTURES:
        targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    return {"rank": rng.choice([4, 8, 16, 64]), "targets": targets, "dropout": rng.choice([0.0, 0.0, 0.05]), "dtype": "auto"}


def make_job(rng, kind):
    method = choose_method(rng, kind)
    weights, precision = choose_regime(rng, method)
    kernel = choose_kernel(rng, kind, precision)
    seq = rng.choice([128, 256, 500, 512, 1000, 1024, 2048, 4096])
    optimizer, impl = pick(rng, OPTIMIZERS)
    job = {"stage": "sft", "method": "lora" if method == "qlora" else method, "weights": weights, "precision": precision,
           "optimizer": optimizer, "optimizer_impl": impl, "batch": rng.choice([1, 1, 2, 3, 4, 8]),
           "seq": min(seq, 1024) if kernel in SQUARE else seq, "accumulate": rng.choices([1, 2], [4, 1])[0],
           "checkpointing": pick(rng, CHECKPOINTING), "attention": kernel,
           "implementation": "liger" if kind in LIGER and rng.random() < 0.2 else "hf", "engine": "torch", "loop": "plain",
           "clip": rng.random() < 0.8}
    if method != "full":
        job["adapter"] = choose_adapter(rng, kind)
    if method == "qlora":
        job.update(kbit_prepare=rng.random() < 0.6, double_quant=rng.random() < 0.7)
    return method, job


def jobs(count, seed):
    rng = random.Random(seed)
    names = list(FAMILIES)
    for number in range(count):
        name = names[number % len(names)]
        method, job = make_job(rng, FAMILIES[name]["model_type"])
        yield {"id": f"grid-{seed}-{number:04d}-{name}-{method}", "config": FAMILIES[name], "job": job}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for job in jobs(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(job))


if __name__ == "__main__":
    main()
