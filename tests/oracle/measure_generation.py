"""What GRPO's generation takes: TRL's trainer draws its completions with the model's cache, on the phantom card.

usage: measure_generation.py < rows.jsonl > rows.jsonl        rows of oracle-trl.jsonl of stage grpo; "peak_generate" is measured anew
       measure_generation.py --peak ROW                       every tensor alive at the highest moment of the generation
Under run.sh, with trl 1.16. The card samples nothing, so that the loop over tokens counts to the row's completion length, and the trainer
goes on with tokens of its own."""
import collections
import json
import os
import sys

import torch

import measure

CUDA = torch.cuda


def tokenizer():
    from tokenizers import Tokenizer, models as parts, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = {word: number for number, word in enumerate(["<pad>", "<s>", "</s>", "<unk>"] + [f"w{i}" for i in range(900)])}
    made = Tokenizer(parts.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def whole_model(row):
    """As users load one: its config leaves the cache on."""
    import transformers
    config = {key: value for key, value in row["config"].items() if key not in ("torch_dtype", "dtype", "architectures")}
    config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    config.use_cache = True
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[row["job"]["weights"]]
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")


def trainer_of(row):
    import peft
    import trl
    from datasets import Dataset
    job = row["job"]
    prompt = " ".join(f"w{i % 900}" for i in range(job["seq"] - job["completion"]))
    rows = job["batch"] * job.get("accumulate", 1) * 4
    arguments = trl.GRPOConfig(
        output_dir="/tmp/phantom-out", per_device_train_batch_size=job["batch"], gradient_accumulation_steps=job.get("accumulate", 1),
        max_steps=2, bf16=job["precision"] == "amp-bf16", report_to=[], save_strategy="no", logging_steps=10**6, disable_tqdm=True,
        gradient_checkpointing=job.get("checkpointing", "none") != "none", optim="adamw_torch", num_generations=job["generations"],
        max_completion_length=job["completion"], beta=job.get("beta", 0.0), steps_per_generation=job.get("accumulate", 1))
    adapter = job.get("adapter", {})
    lora = peft.LoraConfig(r=adapter.get("rank", 16), target_modules=adapter.get("targets", "all-linear"), lora_dropout=0.0,
                           task_type="CAUSAL_LM")
    return trl.GRPOTrainer(
        model=whole_model(row), reward_funcs=lambda completions, **_: [0.0] * len(completions), args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [prompt] * rows}), processing_class=tokenizer(),
        peft_config=lora if job["method"] == "lora" else None)


class Watch:
    """Stands around the trainer's generation; the last call's figures count."""

    def __init__(self, trainer, completion, records):
        from transformers.generation.utils import GenerationMixin
        self.inner, self.completion, self.records, self.left, self.figures, self.events = (
            trainer._generate_single_turn, completion, records, 0, {}, [])
        trainer._generate_single_turn = self.generate
        GenerationMixin._has_unfinished_sequences = self.goes_on

    def goes_on(self, *_, **__):
        self.left -= 1
        return self.left >= 0

    def generate(self, *args, **kwargs):
        self.left = self.completion
        CUDA.reset_peak_memory_stats()
        if self.records:
            CUDA.memory._record_memory_history(max_entries=8_000_000, stacks="python")
        drawn = self.inner(*args, **kwargs)
        if self.records:
            self.events = CUDA.memory._snapshot()["device_traces"][0]
            CUDA.memory._record_memory_history(enabled=None)
        stats = CUDA.memory_stats()
        self.figures = {kind: {name: stats[f"{key}.all.{when}"] for name, when in (("peak_generate", "peak"), ("after_generate", "current"))}
                        for kind, key in measure.Meter.KEYS.items()}
        return ([[5 + i % 800 for i in range(self.completion)] for _ in drawn[0]], *drawn[1:])


def run(row, records=False):
    trainer = trainer_of(row)
    trainer._calculate_rewards = lambda inputs, *_: torch.zeros((len(inputs), 1), device="cuda")  # reads no mask back
    watch = Watch(trainer, row["job"]["completion"], records)
    trainer.train()
    return watch


def measure_generation(row):
    figures = run(row).figures
    for kind, found in figures.items():
        row.setdefault(kind, {}).update(found)
    return row


def print_peak(row):
    live, total, best = {}, 0, (-1, {})
    for event in run(row, True).events:
        if event["action"] == "alloc":
            live[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            total -= live.pop(event["addr"])["size"]
        if total > best[0]:
            best = (total, dict(live))
    size = collections.Counter()
    for event in best[1].values():
        lines = [f"{os.path.basename(f['filename'])}:{f['line']} {f['name']}" for f in event["frames"]
                 if f["filename"].endswith(".py") and "nn/modules/module.py" not in f["filename"]]
        size[" < ".join(lines[:4])] += event["size"]
    print(f"{best[0]:,} bytes above what lived before")
    for code, part in size.most_common(40):
        print(f"{part:>16,}  {code}")


def main():
    if sys.argv[1:2] == ["--peak"]:
        return print_peak(json.loads(open(sys.argv[2], encoding="utf-8").readline()))
    return measure.serve(measure_generation)


if __name__ == "__main__":
    main()
