"""Runs one rank of DeepSpeed jobs that call deepspeed.checkpointing.checkpoint, on the phantom card; one JSON line per job.

usage: measure_deepspeed.py < rows.jsonl > measured.jsonl
rows: those of data/measurements/oracle-sharded.jsonl whose source is this script

Hugging Face's layers, or Megatron-core's with tensor parallelism (implementation megatron). measure_sharded.py,
which measures one rank of many, is to be on PYTHONPATH, for Megatron's layers megatron-core 0.16.1 as well."""
import contextlib
import functools
import sys
from importlib.metadata import version
from types import SimpleNamespace

import measure_sharded as base
import torch

import megatron_model as models
import megatron_parts as parts

SECTION = {"partition_activations": "partition_activations", "cpu_checkpointing": "cpu_checkpointing",
           "contiguous_memory_optimization": "contiguous_memory_optimization", "number_checkpoints": "number_checkpoints"}


def run_of(row):
    """What measure_sharded.py calls a run."""
    job, sharding = row["job"], row["job"].get("sharding", {})
    names = (("reduce", "reduce_bucket_size"), ("allgather", "allgather_bucket_size"), ("prefetch", "stage3_prefetch_bucket_size"),
             ("persistence", "stage3_param_persistence_threshold"), ("max_live", "stage3_max_live_parameters"),
             ("reuse", "stage3_max_reuse_distance"), ("sub_group", "sub_group_size"))
    buckets = {ours: sharding[theirs] for ours, theirs in names if theirs in sharding}
    return {"engine": "deepspeed", "world": job["hardware"]["count"], "rank": row.get("run", {}).get("rank", 0),
            "zero": sharding.get("zero", 0), "batch": job["batch"], "seq": job["seq"], "accumulate": job.get("accumulate", 1),
            "weights": "bf16", "precision": "bf16", "attention": "flash", "buckets": buckets, "steps": 2,
            "overlap_comm": sharding.get("overlap_comm"), "clip": True}


def section_of(job):
    return {key: job["sharding"][key] for key in SECTION if key in job.get("sharding", {})}


def layers_of_hugging_face(row, run):
    model = base.measure.build(row["config"], run)
    model.train()
    return model


def call_deepspeed(model):
    """Each layer is recomputed by DeepSpeed's function in the place of torch.utils.checkpoint."""
    import deepspeed
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    for module in model.modules():
        if hasattr(module, "_gradient_checkpointing_func"):
            module._gradient_checkpointing_func = deepspeed.checkpointing.checkpoint


class LossOfGPT(torch.nn.Module):
    """The arguments and the result that measure_sharded.py expects of a model."""

    def __init__(self, gpt):
        super().__init__()
        self.gpt = gpt

    def forward(self, input_ids, labels):
        places = torch.arange(input_ids.shape[1], device="cuda").unsqueeze(0).expand(input_ids.shape[0], -1)
        losses = self.gpt(input_ids, places, None, labels=labels)
        mask = torch.ones(input_ids.numel(), device="cuda")
        return {"loss": (losses.float().view(-1) * mask).sum() / mask.numel()}


def layers_of_megatron(row):
    import deepspeed
    from megatron.core import tensor_parallel
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    job = row["job"]
    parts.norms_that_know_sequence_parallelism()
    parts.no_timing_of_kernels()
    model_parallel_cuda_manual_seed(1)
    if section_of(job):
        def checkpoint(function, distribute, hidden, *rest):
            return deepspeed.checkpointing.checkpoint(lambda again: function(again, *rest), hidden)
        tensor_parallel.checkpoint = checkpoint
    settings = models.transformer_config(row["config"], job)
    settings.finalize_model_grads_func = settings.grad_scale_func = settings.no_sync_func = None
    return LossOfGPT(models.chunks_of_stage(row["config"], job, settings, 0)[0])


def model_parallel_unit(state):
    """Megatron's groups under the older names that DeepSpeed asks for."""
    names = {"get_model_parallel_" + what: getattr(state, "get_tensor_model_parallel_" + what) for what in ("rank", "group", "world_size")}
    names.update({"get_data_parallel_" + what: getattr(state, "get_data_parallel_" + what) for what in ("rank", "group", "world_size")})
    return SimpleNamespace(**names)


def construction(job, config):
    """MiCS, which DeepSpeed had until 0.19.7, partitions the model while it is built."""
    import deepspeed
    if "mics_shard_size" in job["sharding"]:
        return deepspeed.zero.MiCS_Init(config_dict_or_path=config)
    return contextlib.nullcontext()


class Engine(base.DeepSpeedEngine):
    def __init__(self, row, run):
        import deepspeed
        from deepspeed import comm as dist
        self.run, job = run, row["job"]
        self.config(row, run)
        self.ds["activation_checkpointing"] = section_of(job)
        if "mics_shard_size" in job["sharding"]:
            self.ds["zero_optimization"]["mics_shard_size"] = job["sharding"]["mics_shard_size"]
        dist.init_distributed(dist_backend=None, dist_init_required=False)
        mpu = None
        megatron = job.get("implementation") == "megatron"
        if megatron:
            from megatron.core import parallel_state
            parallel_state.initialize_model_parallel(tensor_model_parallel_size=models.degree(job, "tp"), create_gloo_process_groups=False)
            mpu = model_parallel_unit(parallel_state)
        build = functools.partial(layers_of_megatron, row) if megatron else functools.partial(layers_of_hugging_face, row, run)
        with construction(job, self.ds):
            self.model = build()
        deepspeed.checkpointing.configure(mpu, deepspeed_config=self.ds)
        if section_of(job) and not megatron:
            call_deepspeed(self.model)
        params = list(self.model.parameters())
        self.count = self.trainable = sum(getattr(p, "ds_numel", p.numel()) for p in params)
        opt = base.measure.optimizer_for({**run, "optimizer": "adamw", "impl": job.get("optimizer_impl", "foreach")}, params)
        self.engine, self.opt, _, _ = deepspeed.initialize(model=self.model, optimizer=opt, model_parameters=params, config=self.ds, mpu=mpu)
        self.model = self.engine


def measure(row, run):
    base.ENGINES["deepspeed"] = Engine
    out = REAL(row, run)
    return {**{key: row[key] for key in ("config", "job", "run") if key in row}, **out,
            "source": "DeepSpeed " + version("deepspeed") + " on the phantom GPU (tests/oracle/measure_deepspeed.py), torch " + torch.__version__}


def patch():
    import deepspeed.runtime.zero.stage_1_and_2 as stages
    if not hasattr(stages, "is_invalid_grad_norm"):  # of releases before 0.19
        stages.is_invalid_grad_norm = lambda norm: False
    PATCH()


REAL, base.measure_engine = base.measure_engine, measure
PATCH, base.patch_deepspeed = base.patch_deepspeed, patch


class Rows:
    """Standard input with the run that each row stands for."""

    def __iter__(self):
        import json
        for line in sys.__stdin__:
            if line.strip():
                row = json.loads(line)
                extra = row.get("run", {})
                yield json.dumps({**row, "run": {**run_of(row), **extra}})


if __name__ == "__main__":
    sys.stdin = Rows()
    base.main()
