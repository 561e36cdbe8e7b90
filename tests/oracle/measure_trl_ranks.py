"""One rank of many of a job that TRL's trainers run under DDP or DeepSpeed; PyTorch's fake process group stands for the others.

usage: run.sh measure_trl_ranks.py < row.jsonl > measured.jsonl

Needs what measure_trl_rows.py needs, deepspeed, and measure_sharded.py (the script for ranks that the oracle came with) on PYTHONPATH. Give
each row a process of its own. A row is one of oracle-stages.jsonl. With stage_args.use_vllm the policy's weights are handed to a vLLM that
is not there: phase generate is what that takes."""
import json
import os
import sys

import types

import measure_evaluation
import measure_sharded
import measure_trl_rows as rows
import torch

NO_KEYS_OF_DEEPSPEED = ("fsdp", "zero", "offload", "wrap", "pin_memory")


def engine_arguments(job):
    if job["engine"] in ("ddp", "torch"):
        return {}
    sharding = job["sharding"]
    if job["engine"] in ("fsdp", "fsdp2"):
        second = job["engine"] == "fsdp2"
        os.environ.update(ACCELERATE_USE_FSDP="true", FSDP_VERSION="2" if second else "1")
        return {"fsdp": True if second else sharding["fsdp"] + " auto_wrap", "fsdp_config": {"version": 2 if second else 1}}
    zero = {"stage": sharding["zero"], **{key: value for key, value in sharding.items() if key not in NO_KEYS_OF_DEEPSPEED}}
    for device, part in (("optimizer", "offload_optimizer"), ("param", "offload_param")):
        if device in sharding.get("offload", "none"):
            zero[part] = {"device": "cpu", "pin_memory": sharding.get("pin_memory", True)}
    automatic = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "train_batch_size")
    return {"deepspeed": {"zero_optimization": zero, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
                          "steps_per_print": 10**9, **dict.fromkeys(automatic, "auto")}}


def hand_weights_over(job):
    """The generation is TRL's sync_weights alone (trl 1.16 generation/vllm_generation.py), to a model that takes nothing."""
    from trl.distributed import DistributedBackend
    from trl.generation.vllm_generation import VLLMGeneration
    stub = rows.measure_trl.stub_generation
    taker = types.SimpleNamespace(load_weights=lambda _: None)
    worker = types.SimpleNamespace(model_runner=types.SimpleNamespace(model=taker))
    llm = types.SimpleNamespace(reset_prefix_cache=lambda: None,
                                llm_engine=types.SimpleNamespace(model_executor=types.SimpleNamespace(driver_worker=worker)))

    def stubbed(trainer, run):
        stub(trainer, run)
        written = trainer._generate_single_turn

        def turn(*arguments, **named):
            receiver = VLLMGeneration.__new__(VLLMGeneration)
            receiver.__dict__.update(model=trainer.model, accelerator=trainer.accelerator, mode="colocate", enable_sleep_mode=False, llm=llm,
                                     _dist=DistributedBackend(trainer.accelerator))
            METERS[-1].phase("generate")
            if trainer.state.global_step > 0:  # FSDP1's root must have run before its units are opened by themselves
                receiver.sync_weights()
            METERS[-1].phase("score")
            return written(*arguments, **named)

        trainer._generate_single_turn = turn
        trainer.use_vllm = bool(job["stage_args"].get("old_log_probabilities"))

    rows.measure_trl.stub_generation = stubbed


METERS = []


class Meter(rows.Meter):
    def __init__(self):
        super().__init__()
        METERS.append(self)


def main():
    row = json.loads(sys.stdin.readline())
    job = row["job"]
    measure_sharded.phantom("phantom_shadow", 1)
    measure_sharded.init_group(job["hardware"]["count"], 0)
    measure_sharded.patch_ddp()
    measure_evaluation.gather_flat()
    if job["engine"] == "deepspeed":
        import deepspeed  # noqa: F401
        measure_sharded.patch_deepspeed()
    rows.frameworks.Meter = Meter
    if job.get("stage_args", {}).get("use_vllm"):
        hand_weights_over(job)
    run = rows.run_of(job)
    rows.with_arguments({**run.pop("args"), **engine_arguments(job)})
    measured = rows.measure_trl.measure({"id": row["id"], "config": row["config"], "run": run})
    requested = measured["bytes"].pop("requested")
    print(json.dumps({**{key: row[key] for key in ("id", "config", "job")}, "bytes": measured["bytes"], "requested": requested,
                      "source": "TRL's trainers on the phantom GPU (tests/oracle/measure_trl_ranks.py), torch " + torch.__version__}))


if __name__ == "__main__":
    main()
