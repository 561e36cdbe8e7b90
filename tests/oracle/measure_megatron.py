"""Runs one rank of a Megatron-core job on the phantom card: megatron-core 0.16.1 with its local layers (megatron_parts.py stands for Apex).

usage: measure_megatron.py < rows.jsonl > measured.jsonl        rows as in data/measurements/oracle-megatron.jsonl
       measure_megatron.py --peak ROW [forward | backward | step]     every tensor alive at that phase's highest moment, with its code
Under run.sh, in an environment that also has megatron-core."""
import gc
import importlib
from functools import partial

import torch

import measure
import megatron_lora as lora
import megatron_model as models
import megatron_parts as parts

CUDA = torch.cuda
PHASES = ("forward", "backward", "step")


def batches(job):
    rows, tokens = job.get("batch", 1), job["seq"]
    local = tokens // models.degree(job, "cp")
    while True:
        ids = torch.randint(0, 100, (rows, local), device="cuda")
        places = torch.arange(local, device="cuda").unsqueeze(0).expand(rows, -1)
        mask = torch.ones((1, 1, tokens, tokens), dtype=torch.bool, device="cuda") if job["attention"] == "eager" else None
        yield ids, places, mask


def loss_of(mask, losses):
    total = (losses.float().view(-1) * mask).sum()
    return total, torch.tensor(mask.numel(), dtype=torch.int, device="cuda"), {"lm loss": total.detach()}


def train_step(job, chunks, optimizer, meter):
    from megatron.core.pipeline_parallel import get_forward_backward_func

    def forward(data, model):
        ids, places, mask = next(data)
        meter.phase("forward")
        out = model(ids, places, mask, labels=ids)
        meter.phase("backward")
        return out, partial(loss_of, torch.ones(ids.numel(), device="cuda"))

    for chunk in chunks:
        chunk.zero_grad_buffer()
    optimizer.zero_grad()
    gc.collect()
    meter.restart()
    meter.phase("forward")
    several = len(chunks) > 1
    get_forward_backward_func()(
        forward_step_func=forward, data_iterator=[batches(job) for _ in chunks] if several else batches(job),
        model=chunks if several else chunks[0], num_microbatches=job.get("accumulate", 1),
        seq_length=job["seq"], micro_batch_size=job.get("batch", 1), forward_only=False)
    meter.phase("step")
    optimizer.step()
    meter.phase("between")


def prepare(row):
    config, job = row["config"], row["job"]
    parts.norms_that_know_sequence_parallelism()
    parts.no_timing_of_kernels()
    parts.no_fp8()
    if job.get("optimizer_impl", "fused") == "fused":
        parts.fused_adam()
    if models.is_latent(config):
        from megatron.core.transformer import multi_latent_attention
        for name in ("TELinear", "TEColumnParallelLinear", "Linear"):  # 0.16.1 asks for their types without Transformer Engine, too
            if not isinstance(getattr(multi_latent_attention, name, None), type):
                setattr(multi_latent_attention, name, type(name, (), {}))
    if models.experts(config):
        capacity = models.sharding(job, "moe_expert_capacity_factor") or 1.0
        row["router"] = parts.EvenRouter(models.experts(config), config["num_experts_per_tok"], min(capacity, 1.0))


def measure_rank(row):
    from megatron.core.distributed import finalize_model_grads
    job, meter = row["job"], measure.StepMeter(PHASES)
    prepare(row)
    rank = row.get("run", {}).get("rank", 0)
    models.start_groups(job, rank)
    settings = models.transformer_config(row["config"], job)
    stage = rank // (job["hardware"]["count"] // models.degree(job, "pp"))
    chunks = models.chunks_of_stage(row["config"], job, settings, stage)
    chunks, optimizer = models.wrap(settings, lora.adapt(chunks, job) if job["method"] == "lora" else chunks, job)
    settings.finalize_model_grads_func = finalize_model_grads
    settings.grad_scale_func = settings.no_sync_func = None
    gc.collect()
    CUDA.empty_cache()
    weights = meter.live()
    for _ in range(2):
        train_step(job, chunks, optimizer, meter)
    row.pop("router", None)
    return {**row, "parameters": sum(p.numel() for chunk in chunks for p in chunk.parameters()), **meter.row(weights),
            "source": "megatron-core 0.16.1 on the phantom GPU (tests/oracle/measure_megatron.py), local layers, torch " + torch.__version__}


def load_megatron():
    """Before the forks, so that each child has it at once."""
    for name in ("core.distributed", "core.models.gpt", "core.optimizer", "core.pipeline_parallel", "core.transformer.moe.experts"):
        importlib.import_module("megatron." + name)


if __name__ == "__main__":
    measure.serve_or_show_peak(measure_rank, load_megatron)
