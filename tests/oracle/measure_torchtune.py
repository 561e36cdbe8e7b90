"""Runs torchtune 0.6.1's own recipes (their train()) on the phantom card; under FSDP2 one rank, PyTorch's fake process group standing for the others.

usage: measure_torchtune.py < jobs.jsonl > rows.jsonl        jobs as the rows of data/measurements/oracle-torchtune.jsonl
       measure_torchtune.py --peak ROW [forward | backward | clip | step]     every tensor alive at that phase's highest moment
Under run.sh, in an environment that also has torchtune, torchao 0.15 and omegaconf. A job's "config" is a llama's, mistral's or qwen2's, its
"job" membill's. Batches are whole rows of zeros: their labels count, but for those of `prompt`."""
import gc
import importlib.util
import os
import types

import torch

import measure
from measure_torchtitan import PHASES, told

CUDA = torch.cuda
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
MODULES = {"o_proj": "output_proj"}
MLP = ("gate_proj", "up_proj", "down_proj")


class Meter(measure.StepMeter):
    """A recipe may clip nothing, and one whose optimizer runs in the backward has no step."""

    def row(self, weights):
        for kind in self.KEYS:
            self.end[kind].setdefault("clip", self.end[kind]["backward"])
            self.peak[kind].setdefault("clip", 0)
        seen = tuple(name for name in PHASES if name in self.end["bytes"])
        return self.row_of(weights, seen, seen, seen)


def builder(config, adapts):
    kind = config["model_type"]
    tied = config.get("tie_word_embeddings", False)
    scaled = config["max_position_embeddings"] >= 131072
    family = {"llama": "llama3_2" if tied else "llama3_1" if scaled else "llama3"}.get(kind, kind)
    found = importlib.import_module("torchtune.models." + family + "._component_builders")
    return getattr(found, ("lora_" if adapts else "") + family), family


def adapter_arguments(job):
    adapter = job["adapter"]
    targets = list(adapter["targets"])
    return {"lora_attn_modules": [MODULES.get(name, name) for name in targets if name not in (*MLP, "lm_head")],
            "apply_lora_to_mlp": any(name in MLP for name in targets), "apply_lora_to_output": "lm_head" in targets,
            "lora_rank": adapter["rank"], "lora_alpha": adapter.get("alpha", 16), "lora_dropout": adapter.get("dropout", 0.0),
            "use_dora": job["method"] == "dora", "quantize_base": job["weights"] == "nf4"}


def model_of(config, job, adapts):
    make, family = builder(config, adapts)
    arguments = {"vocab_size": config["vocab_size"], "num_layers": config["num_hidden_layers"], "num_heads": config["num_attention_heads"],
                 "num_kv_heads": config["num_key_value_heads"], "embed_dim": config["hidden_size"],
                 "intermediate_dim": config["intermediate_size"], "max_seq_len": config["max_position_embeddings"]}
    if family == "qwen2":
        arguments["tie_word_embeddings"] = config.get("tie_word_embeddings", False)
    if adapts:
        arguments.update(adapter_arguments(job))
    return make(**arguments)


def checkpointed(model, job):
    from torchtune import modules, training
    told_mode = job.get("checkpointing", "none")
    mode = told_mode["mode"] if isinstance(told_mode, dict) else told_mode
    if mode == "full":
        training.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerSelfAttentionLayer})


def offloads(job):
    return isinstance(job.get("checkpointing"), dict) and job["checkpointing"].get("offload", False)


def sharded(model, job):
    from functools import partial
    from torchtune import training
    sharding = job["sharding"]
    names = ["tok_embeddings", "output"] if sharding.get("wrap") == "block+embedding" else None
    training.shard_model(model, shard_conditions=[partial(training.get_shard_conditions, names_to_match=names)],
                         cpu_offload=sharding.get("offload", "none") != "none",
                         reshard_after_forward=sharding.get("fsdp") == "full_shard")


def filled(model, job):
    """What loading a checkpoint leaves: parameters where they belong, tables of positions on the card."""
    host = job["sharding"].get("offload", "none") != "none"
    model.to_empty(device="cpu" if host else "cuda")
    with torch.device("cuda"):
        for module in model.modules():
            if hasattr(module, "rope_init"):
                module.rope_init()
    return model


def built(config, job, trains=True, adapts=None):
    """As the recipe's _setup_model does; `trains`: False for a reference or a teacher."""
    from torchtune import training
    from torchtune.modules import peft
    adapts = job["method"] in ("lora", "dora") if adapts is None else adapts
    many = job.get("engine") == "fsdp2"
    packed = job["weights"] == "nf4"
    place = "meta" if many and not packed else "cuda"  # a packed weight is cut with its data
    with training.set_default_dtype(DTYPES.get(job["weights"], torch.bfloat16)), torch.device(place):
        model = model_of(config, job, adapts)
    if adapts:
        peft.set_trainable_params(model, peft.get_adapter_params(model))
    if trains:
        checkpointed(model, job)
    if many:
        sharded(model, job)
        model = model if packed else filled(model, job)
    training.disable_dropout(model) if many and job["stage"] == "dpo" else None
    if not trains:
        model.requires_grad_(False)
        model.eval()
    return model


def optimizer(job, parameters):
    import bitsandbytes
    name = job["optimizer"].replace("-", "_")
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=2e-5, **({"fused": True} if job["optimizer_impl"] == "fused" else {}))
    return {"paged_adamw_8bit": bitsandbytes.optim.PagedAdamW8bit, "adamw_8bit": bitsandbytes.optim.AdamW8bit}[name](parameters, lr=2e-5)


def chunks(job):
    loss = job.get("loss") or "chunked"
    tokens = job["batch"] * job["seq"]
    return 0 if loss == "native" else tokens // int(loss.split(":")[1]) if ":" in loss else 8


def pair_batch(job):
    rows, tokens = job["batch"] * 2, job["seq"]
    ids = torch.zeros((rows, tokens), dtype=torch.int64)
    labels = ids.clone()
    labels[:, :tokens - job.get("completion", tokens)] = -100
    return ids, labels


def plain_batch(job):
    ids = torch.zeros((job["batch"], job["seq"]), dtype=torch.int64)
    return {"tokens": ids, "labels": ids.clone()}


class Batches:
    """Each step begins when its first batch is asked for."""

    def __init__(self, make, job, meter):
        self.make, self.meter = make, meter
        self.accumulate = job.get("accumulate", 1)
        self.count = 3 * self.accumulate
        self.sampler = types.SimpleNamespace(set_epoch=lambda _: None)

    def __len__(self):
        return self.count

    def __iter__(self):
        for number in range(self.count):
            self.meter.phase("between") if number % self.accumulate == 0 else None
            if number % self.accumulate == 0:
                gc.collect()
                self.meter.restart()
            self.meter.phase("forward")
            yield self.make()


def recipe_module(name):
    """Recipes are scripts beside the package."""
    import torchtune
    folder = os.path.join(os.path.dirname(os.path.dirname(torchtune.__file__)), "recipes")
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recipe_of(row):
    job = row["job"]
    stage, many = job["stage"], job.get("engine") == "fsdp2"
    place = "distributed" if many else "single_device"
    if stage == "distill":
        name = "knowledge_distillation_" + place
    elif stage == "dpo":
        name = ("lora_dpo_" if job["method"] != "full" else "full_dpo_") + place
    else:
        name = ("lora_" if job["method"] != "full" else "full_") + "finetune_" + place
    module = recipe_module(name)
    recipe = next(value for key, value in vars(module).items() if "Recipe" in key and isinstance(value, type) and value.__module__ == module.__name__)
    return recipe.__new__(recipe)


def counting_labels():
    """The distillation losses ask the card whether any label counts; what is read back says that none does, and their graph would go."""
    import inspect
    import torchtune.modules.loss.kd_losses as found
    source = inspect.getsource(found)
    for asked in ("sum_masks == 0", "torch.sum(mask.view(-1), dim=0) == 0"):
        source = source.replace(f"if {asked}:", f"if ({asked}) is None:")
    made = {"__name__": found.__name__}
    exec(source, made)
    return made


def losses(row, recipe):
    from torchtune.modules import loss as torchtune_loss
    job = row["job"]
    if job["stage"] == "dpo":
        recipe._loss_fn = importlib.import_module("torchtune.rlhf.loss").DPOLoss()
        return
    count = chunks(job)
    recipe._loss_fn = torchtune_loss.CEWithChunkedOutputLoss(num_output_chunks=count) if count else torch.nn.CrossEntropyLoss(ignore_index=-100)
    distills = job["stage"] == "distill"
    if distills:
        kind = job.get("stage_args", {}).get("kd_loss", "forward").capitalize() + "KL"
        found = counting_labels()
        recipe._kd_loss_fn = found[kind + "WithChunkedOutputLoss"](num_output_chunks=count) if count else found[kind + "Loss"]()
        recipe._kd_ratio = 0.5
        recipe._teacher_model = built(job["teacher"]["config"], job, False, False)
    if count:
        recipe._model.set_num_output_chunks(count)
        if distills:
            recipe._teacher_model.set_num_output_chunks(count)


def in_backward(recipe, job):
    from torchtune import training
    each = {p: optimizer(job, [p]) for p in recipe._model.parameters()}
    training.register_optim_in_bwd_hooks(model=recipe._model, optim_dict=each)
    recipe._optim_ckpt_wrapper = training.create_optim_in_bwd_wrapper(model=recipe._model, optim_dict=each)
    recipe._optimizer = None


class Profiler:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self):
        pass

    stop = step = start


def set_up(row, meter):
    """The recipe as its setup() leaves it."""
    from torchtune import training
    job, recipe = row["job"], recipe_of(row)
    recipe.__dict__.update(
        _device=torch.device("cuda"), _dtype=torch.bfloat16, rank=0, world_size=row["job"].get("hardware", {}).get("count", 1), _is_rank_zero=True,
        _resume_from_checkpoint=False, _clip_grad_norm=1.0 if job.get("clip") else None, _gradient_accumulation_steps=job.get("accumulate", 1),
        _optimizer_in_bwd=job.get("optimizer_in_backward", False), optimizer_in_bwd=job.get("optimizer_in_backward", False),
        max_steps_per_epoch=None, epochs_run=0, total_epochs=1, global_step=0, _steps_per_epoch=3, _lr_scheduler=types.SimpleNamespace(step=lambda: None),
        _log_every_n_steps=10**6, _log_peak_memory_stats=False, _metric_logger=None, _model_compile=False, _compile=False,
        profiler_profile_memory=False, save_checkpoint=lambda *_, **__: None)
    recipe._profiler = Profiler()
    recipe.parallel_dims = types.SimpleNamespace(min_fsdp_degree=1, non_data_parallel_size=1)
    recipe.dp_degree = recipe.dp_size = recipe.world_size
    recipe._enable_activation_offloading = offloads(job)
    recipe._model = built(row["config"], job)
    recipe.activations_handling_ctx = training.get_act_offloading_ctx_manager(recipe._model, offloads(job))
    if job["stage"] == "dpo" and job["method"] == "full":
        recipe._ref_model = built(row["config"], job, False)
    if recipe._optimizer_in_bwd:
        in_backward(recipe, job)
    else:
        recipe._optimizer = optimizer(job, recipe._model.parameters())
    losses(row, recipe)
    recipe._dataloader = Batches((lambda: pair_batch(job)) if job["stage"] == "dpo" else (lambda: plain_batch(job)), job, meter)
    recipe._sampler = recipe._dataloader.sampler
    recipe.ignore_labels_cache = torch.full((job["batch"], 1), -100, device="cuda")
    return recipe


def watch(recipe, meter):
    torch.Tensor.backward = told(torch.Tensor.backward, meter, "backward")
    backward = torch.Tensor.backward

    def then_clip(*args, **kwargs):
        backward(*args, **kwargs)
        meter.phase("clip")

    torch.Tensor.backward = then_clip
    if recipe._optimizer is not None:
        recipe._optimizer.step = told(recipe._optimizer.step, meter, "step")
        recipe._optimizer.zero_grad = told(recipe._optimizer.zero_grad, meter, "zero")


def fake_group(cards):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(cards), LOCAL_WORLD_SIZE=str(cards), MASTER_ADDR="localhost", MASTER_PORT="29500")
    dist.init_process_group(backend="fake", rank=0, world_size=cards, store=FakeStore())
    CUDA.set_device(0)


def measure_recipe(row):
    meter = Meter(PHASES)
    if row["job"].get("engine") == "fsdp2":
        fake_group(row["job"]["hardware"]["count"])
    recipe = set_up(row, meter)
    gc.collect()
    CUDA.empty_cache()
    weights = meter.live()
    watch(recipe, meter)
    recipe.train()
    meter.phase(None)
    return {**{key: row[key] for key in ("id", "config", "job")},
            **meter.row(weights), "source": "torchtune 0.6.1's recipes on the phantom GPU (tests/oracle/measure_torchtune.py), torch " + torch.__version__}


def load_torchtune():
    """Before the forks, so that each child has it at once."""
    import logging
    import bitsandbytes  # noqa: F401
    import torchtune.models.llama3_1  # noqa: F401
    logging.disable(logging.INFO)


if __name__ == "__main__":
    measure.serve_or_show_peak(measure_recipe, load_torchtune)
