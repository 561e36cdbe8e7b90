"""One rank of many of a job that TRL's trainers run under DDP or DeepSpeed; PyTorch's fake process group stands for the others.

usage: run.sh measure_trl_ranks.py < row.jsonl > measured.jsonl

Needs what measure_trl_rows.py needs, deepspeed, and measure_sharded.py (the script for ranks that the oracle came with) on PYTHONPATH. Give
each row a process of its own. A row is one of oracle-stages.jsonl."""
import json
import sys

import measure_sharded
import measure_trl_rows as rows
import torch

NO_KEYS_OF_DEEPSPEED = ("fsdp", "zero", "offload", "wrap", "pin_memory")


def engine_arguments(job):
    if job["engine"] == "ddp":
        return {}
    sharding = job["sharding"]
    zero = {"stage": sharding["zero"], **{key: value for key, value in sharding.items() if key not in NO_KEYS_OF_DEEPSPEED}}
    for device, part in (("optimizer", "offload_optimizer"), ("param", "offload_param")):
        if device in sharding.get("offload", "none"):
            zero[part] = {"device": "cpu", "pin_memory": sharding.get("pin_memory", True)}
    automatic = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "train_batch_size")
    return {"deepspeed": {"zero_optimization": zero, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
                          "steps_per_print": 10**9, **dict.fromkeys(automatic, "auto")}}


def main():
    row = json.loads(sys.stdin.readline())
    job = row["job"]
    measure_sharded.phantom("phantom_shadow", 1)
    measure_sharded.init_group(job["hardware"]["count"], 0)
    measure_sharded.patch_ddp()
    if job["engine"] == "deepspeed":
        import deepspeed  # noqa: F401
        measure_sharded.patch_deepspeed()
    rows.frameworks.Meter = rows.Meter
    run = rows.run_of(job)
    rows.with_arguments({**run.pop("args"), **engine_arguments(job)})
    measured = rows.measure_trl.measure({"id": row["id"], "config": row["config"], "run": run})
    requested = measured["bytes"].pop("requested")
    print(json.dumps({**{key: row[key] for key in ("id", "config", "job")}, "bytes": measured["bytes"], "requested": requested,
                      "source": "TRL's trainers on the phantom GPU (tests/oracle/measure_trl_ranks.py), torch " + torch.__version__}))


if __name__ == "__main__":
    main()
