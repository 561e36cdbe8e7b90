"""Runs one rank of a torchtitan job on the phantom card: torchtitan 0.2.2's own Trainer, model, FSDP2 and checkpointing; the other ranks
are PyTorch's fake process group.

usage: measure_torchtitan.py < jobs.jsonl > rows.jsonl        jobs as the rows of data/measurements/oracle-torchtitan.jsonl
       measure_torchtitan.py --peak ROW [forward | backward | clip | step]     every tensor alive at that phase's highest moment
Under run.sh, in an environment that also has torchtitan. Attention is the flash kernel: cuDNN's, which torchtitan prefers, asks the card. A job's "config" is a llama's, its "job" membill's; "titan" holds further keys
of torchtitan's configuration, section by section."""
import gc
import os

import torch

import measure

CUDA = torch.cuda
PHASES = ("forward", "backward", "clip", "step")


def model_args(config):
    from torchtitan.models.llama3 import TransformerModelArgs
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    return TransformerModelArgs(
        dim=hidden, n_layers=config["num_hidden_layers"], n_heads=config["num_attention_heads"],
        n_kv_heads=config.get("num_key_value_heads"), vocab_size=config["vocab_size"], multiple_of=inner,
        ffn_dim_multiplier=0.5 * inner / int(8 * hidden / 3))  # rounded up to one multiple


class Batches:
    """A data loader of one and the same batch, on the host as torchtitan's own."""

    def __init__(self, rows, tokens):
        self.batch = torch.zeros((rows, tokens), dtype=torch.int64)

    def __iter__(self):
        while True:
            yield {"input": self.batch.clone()}, self.batch.clone()

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


CHECKPOINTING = {"none": {"mode": "none"}, "full": {"mode": "full"}}
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def checkpointing(job):
    told = job.get("checkpointing", "none")
    if isinstance(told, str) and told in CHECKPOINTING:
        return CHECKPOINTING[told]
    if isinstance(told, dict) and told.get("every"):
        return {"mode": "selective", "selective_ac_option": str(told["every"])}
    return {"mode": "selective", "selective_ac_option": "op"}


def settings(row):
    """torchtitan's sections of membill's job."""
    job, cards = row["job"], row["job"].get("hardware", {}).get("count", 1)
    sharding, spread = job.get("sharding", {}), job.get("parallel", {}).get("cp", 1)
    replicas = 1
    if job["engine"] == "ddp":
        replicas = cards
    elif sharding.get("fsdp") == "hybrid_shard":
        replicas = cards // sharding["shard_group"]
    sections = {
        "training": {
            "local_batch_size": job["batch"], "global_batch_size": job["batch"] * job.get("accumulate", 1) * cards // spread, "seq_len": job["seq"],
            "dtype": DTYPES[job["weights"]], "enable_cpu_offload": sharding.get("offload", "none") != "none",
            "mixed_precision_param": DTYPES[sharding.get("param_dtype") or ("bf16" if job["precision"] == "amp-bf16" else "fp32")]},
        "parallelism": {
            "data_parallel_replicate_degree": replicas, "data_parallel_shard_degree": cards // replicas // spread,
            "context_parallel_degree": spread,
            "fsdp_reshard_after_forward": "never" if sharding.get("fsdp") == "shard_grad_op" else "default"},
        "activation_checkpoint": checkpointing(job),
        "optimizer": {"name": {"adamw": "AdamW", "adam": "Adam"}[job["optimizer"]],
                      "implementation": {"loop": "for-loop"}.get(job["optimizer_impl"], job["optimizer_impl"]),
                      "early_step_in_backward": job.get("optimizer_in_backward", False)},
        "compile": {"enable": bool(job.get("compile", False))},
        "comm": {"mode": "fake_backend"},
        "model": {"name": "measured", "flavor": "measured"},
    }
    for section, keys in row.get("titan", {}).items():
        sections.setdefault(section, {}).update(keys)
    return sections


def job_config(row):
    from torchtitan.config import JobConfig
    config = JobConfig()
    for section, keys in settings(row).items():
        for key, value in keys.items():
            assert hasattr(getattr(config, section), key), (section, key)
            setattr(getattr(config, section), key, value)
    return config


def trainer_of(row, config):
    import dataclasses
    from torchtitan.models import llama3
    from torchtitan.models.llama3.model import model
    from torchtitan.protocols import train_spec
    from torchtitan.train import Trainer
    spec = dataclasses.replace(
        llama3.get_train_spec(), model_args={"measured": model_args(row["config"])}, build_tokenizer_fn=None,
        build_dataloader_fn=lambda **_: Batches(config.training.local_batch_size, config.training.seq_len))
    train_spec._extra_train_specs["measured"] = spec
    backends = torch.nn.attention.SDPBackend
    model.ScaledDotProductAttentionWrapper.sdpa_backends = [backends.FLASH_ATTENTION, backends.MATH]
    model.trunc_normal_ = lambda *_, **__: None  # draws until all is in bounds, which this card never says
    return Trainer(config)


def told(function, meter, phase):
    def call(*args, **kwargs):
        meter.phase(phase)
        return function(*args, **kwargs)
    return call


def no_timing_of_kernels():
    import torch._inductor.runtime.benchmarking as timing
    for cls in (timing.Benchmarker, timing.TritonBenchmarker, timing.InductorBenchmarker):
        for name in ("benchmark_gpu", "benchmark"):
            if name in vars(cls):
                setattr(cls, name, lambda self, *a, **k: 1.0)


def buckets_come_back():
    """The fake group's futures hold nothing where DDP's all-reduce wants the bucket."""
    from torch.nn.parallel import DistributedDataParallel
    made = DistributedDataParallel.__init__

    def hand_back(_, bucket):
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.register_comm_hook(None, hand_back)

    DistributedDataParallel.__init__ = init


def measure_rank(row):
    from torchtitan.distributed import utils as dist_utils
    meter = measure.StepMeter(PHASES)
    cards = row["job"].get("hardware", {}).get("count", 1)
    os.environ.update(NGPU=str(cards), LOCAL_RANK="0", RANK="0", WORLD_SIZE=str(cards))
    no_timing_of_kernels()
    buckets_come_back()
    torch.nn.parallel.distributed._verify_param_shape_across_processes = lambda *_, **__: None  # reads what no other rank sent
    trainer = trainer_of(row, job_config(row))
    gc.collect()
    CUDA.empty_cache()
    weights = meter.live()
    trainer.forward_backward_step = told(trainer.forward_backward_step, meter, "forward")
    torch.Tensor.backward = told(torch.Tensor.backward, meter, "backward")
    dist_utils.clip_grad_norm_ = told(dist_utils.clip_grad_norm_, meter, "clip")
    trainer.optimizers.step = told(trainer.optimizers.step, meter, "step")
    batches = trainer.batch_generator(trainer.dataloader)
    for step in range(1, 4):
        meter.restart()
        trainer.step = step
        trainer.train_step(batches)
        meter.phase("between")
    return {**row, "parameters": sum(p.numel() for p in trainer.model_parts[0].parameters()), **meter.row(weights),
            "source": "torchtitan 0.2.2's Trainer on the phantom GPU (tests/oracle/measure_torchtitan.py), torch " + torch.__version__}


def load_torchtitan():
    """Before the forks, so that each child has it at once."""
    import logging
    import torchtitan.train  # noqa: F401
    logging.disable(logging.INFO)


if __name__ == "__main__":
    measure.serve_or_show_peak(measure_rank, load_torchtitan)
