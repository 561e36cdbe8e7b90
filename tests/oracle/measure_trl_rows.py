"""Measures a row of oracle-trl.jsonl again, or another job of that shape.

usage: run.sh measure_trl_rows.py < row.jsonl > measured.jsonl

Needs trl, and measure_trl.py with its frameworks.py (the scripts for TRL's trainers that the oracle came with) on PYTHONPATH. Give each
row a process of its own: what one leaves behind distorts the next. TRL 0.24 wants transformers 4.57, peft 0.18, accelerate 1.11."""
import inspect
import json
import sys
import textwrap

import frameworks
import torch

REAL_NONZERO, HOOKS = frameworks.Counted.nonzero, []
frameworks.Counted.nonzero = lambda self, x: HOOKS[0](self, x) if HOOKS else REAL_NONZERO(self, x)
import measure_trl  # noqa: E402  (it counts with what stands there when it is imported)

OPTIMIZERS = {("adamw", "foreach"): "adamw_torch", ("adamw", "fused"): "adamw_torch_fused", ("adamw-8bit", "foreach"): "adamw_bnb_8bit",
              ("paged-adamw-8bit", "foreach"): "paged_adamw_8bit"}
CONFIG_ARGUMENTS = ("use_weighting", "label_smoothing")
RUN_ARGUMENTS = ("loss_type", "packing_strategy", "cpo_alpha", "rpo_alpha", "use_logits_to_keep")


class Meter(frameworks.Meter):
    """Requested bytes beside those of blocks."""

    def __init__(self):
        super().__init__()
        self.requested = {}

    def restart(self, name):
        self.phase(None)
        self.end, self.peak, self.all_peak, self.requested = {}, {}, 0, {}
        self.phase(name)

    def phase(self, name):
        if self.name is not None and self.name != "between":
            stats = torch.cuda.memory_stats()
            self.requested["after_" + self.name] = stats["requested_bytes.all.current"]
            for key in ("peak_" + self.name, "peak"):
                self.requested[key] = max(self.requested.get(key, 0), stats["requested_bytes.all.peak"])
        super().phase(name)

    def bytes(self, weights):
        return {**super().bytes(weights), "requested": self.requested}


def run_of(job):
    """The measuring script's fields of a job."""
    checkpointing = job["checkpointing"]
    if isinstance(checkpointing, dict):
        checkpointing = "reentrant" if checkpointing.get("reentrant") else checkpointing["mode"]
    arguments = job.get("stage_args", {})
    packed = job["weights"] == "nf4"
    run = {"stage": job["stage"], "method": "qlora" if packed else job["method"], "weights": "bf16" if packed else job["weights"],
           "amp": "bf16" if job["precision"] == "amp-bf16" else "none", "checkpointing": checkpointing,
           "optim": OPTIMIZERS[job["optimizer"], job["optimizer_impl"]],
           "offload": isinstance(job["checkpointing"], dict) and job["checkpointing"].get("offload", False),
           "liger": job["implementation"] == "liger" or job["stage"] == "dpo" and bool(arguments.get("use_liger_loss")),
           "reference": job.get("reference", "none"), "args": {key: arguments[key] for key in CONFIG_ARGUMENTS if key in arguments}}
    if arguments.get("use_liger_loss") and job["stage"] != "dpo":
        run["args"]["use_liger_loss"] = True
    run.update({key: job[key] for key in ("batch", "seq", "accumulate", "completion", "packing", "padding_free", "generations", "beta")
                if key in job})
    run.update({key: arguments[key] for key in RUN_ARGUMENTS if key in arguments})
    if "adapter" in job:
        adapter = job["adapter"]
        run["lora"] = {"r": adapter["rank"], "alpha": 32, "targets": adapter["targets"], "dropout": adapter["dropout"]}
    return run


def join_rows():
    """padding_free of DPO: the phantom reads the split of the joined row as 0; rows of one length part in the middle."""
    import trl.trainer.dpo_trainer as trainer
    source = textwrap.dedent(inspect.getsource(trainer.DPOTrainer.concatenated_forward))
    found = "split_idx = (position_ids == 0).nonzero(as_tuple=True)[1][num_examples]"
    made = {}
    exec(source.replace(found, "(position_ids == 0).nonzero(as_tuple=True); split_idx = position_ids.shape[1] // 2"), vars(trainer), made)
    trainer.DPOTrainer.concatenated_forward = made["concatenated_forward"]

    def nonzero(self, x):
        seq = measure_trl.COUNT.seq
        if x.dim() != 2 or x.shape[0] > 1 and x.shape[-1] != seq:
            return REAL_NONZERO(self, x)
        count = x.numel() if x.shape[0] > 1 else x.numel() // seq * measure_trl.COUNT.valid
        return torch.empty((2, count), dtype=torch.int64, device=x.device).t()

    HOOKS.append(nonzero)


def leave_gradients():
    """With one micro-batch the gradient of Liger's loss is 1; the phantom says that it is not, and both products would be made."""
    import importlib
    folder = "liger_kernel.chunked_loss."
    bases = {"fused_linear_preference": ("LigerFusedLinearPreferenceBase", (None, "bias", None, None, None, None)),
             "fused_linear_unpaired_preference": ("LigerFusedLinearUnpairedPreferenceBase", (None, None, "bias"))}

    def backward_of(rest):
        def backward(ctx, *_):
            hidden, head, bias = ctx.saved_tensors
            return hidden, head, *(bias if part else None for part in rest)

        return staticmethod(backward)

    for module, (name, rest) in bases.items():
        getattr(importlib.import_module(folder + module), name).backward = backward_of(rest)


def with_arguments(further):
    """Arguments of TRL's configurations that the measuring script has no field for."""
    real = measure_trl.classes

    def classes(stage):
        trainer, config = real(stage)

        def make(**arguments):
            return config(**arguments, **further)

        make.__signature__ = inspect.signature(config)
        return trainer, make

    measure_trl.classes = classes


def main():
    frameworks.Meter = Meter
    row = json.loads(sys.stdin.readline())
    run = run_of(row["job"])
    with_arguments(run.pop("args"))
    if run["stage"] == "dpo" and run.get("padding_free"):
        join_rows()
    if row["job"].get("stage_args", {}).get("use_liger_loss") and run["accumulate"] == 1:
        leave_gradients()
    measured = measure_trl.measure({"id": row["id"], "config": row["config"], "run": run})
    requested = measured["bytes"].pop("requested")
    print(json.dumps({"id": row["id"], "config": row["config"], "job": row["job"], "bytes": measured["bytes"], "requested": requested}))


if __name__ == "__main__":
    main()
