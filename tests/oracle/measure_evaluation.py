"""Runs the Trainer of one rank of many with an evaluation after each step; one JSON line per job.

usage: measure_evaluation.py < jobs.jsonl > measured.jsonl

jobs: those of measure_sharded.py, which is to be on PYTHONPATH, with engine "trainer"; run field eval_batch: sequences of an evaluation
batch, eval_samples: of one rank's share of the set, eval_logits: metrics are computed from all logits, which go to the host after each
eval_accumulation batches, or at the end. peak_evaluation is the peak of the last step's evaluation."""
import sys

import measure_sharded as base
import torch

CURRENT = {}


class Meter(base.Meter):
    def __init__(self):
        super().__init__()
        CURRENT["meter"] = self

    def rows(self, *given):
        rows = super().rows(*given)
        for i, name in enumerate(("bytes", "requested")):
            rows[name]["peak_evaluation"] = self.peak["evaluation"][i]
            rows[name]["after_evaluation"] = self.end["evaluation"][i]
        return rows


def evaluating(library, run):
    """The library's Trainer, with an evaluation after each step."""

    class Trainer(library.Trainer):
        def __init__(self, *positional, args, train_dataset, **named):
            args.per_device_eval_batch_size = run["eval_batch"]
            args.eval_strategy, args.eval_steps = library.trainer_utils.IntervalStrategy.STEPS, 1
            args.eval_accumulation_steps = run.get("eval_accumulation")
            if run.get("eval_logits"):
                named["compute_metrics"] = lambda predictions: {}
            held = torch.utils.data.Subset(train_dataset, range(run["eval_samples"] * run["world"]))
            super().__init__(*positional, args=args, train_dataset=train_dataset, eval_dataset=held, **named)

            # Rows are equally long: it would gather their lengths, which the fake process group can't, and return what it was given.
            self.accelerator.pad_across_processes = lambda tensor, **unused: tensor

        def evaluate(self, *positional, **named):
            CURRENT["meter"].phase("evaluation")
            result = super().evaluate(*positional, **named)
            CURRENT["meter"].phase("between")
            return result

    return Trainer


def gather_flat():
    """The fake process group copies what it is given into parts of the output, which accelerate makes flat."""
    real = torch.distributed.all_gather_into_tensor

    def gather(output_tensor, input_tensor, *positional, **named):
        return real(output_tensor, input_tensor.view(-1) if output_tensor.dim() == 1 else input_tensor, *positional, **named)

    torch.distributed.all_gather_into_tensor = gather


def measure(job, run):
    gather_flat()
    library = sys.modules["transformers"]
    library.Trainer = evaluating(library, run)
    return {**{key: job[key] for key in ("config", "job", "run") if key in job}, **REAL(job, run),
            "source": "tests/oracle/measure_evaluation.py on the phantom GPU, torch " + torch.__version__}


base.Meter = Meter
REAL, base.measure_trainer = base.measure_trainer, measure

if __name__ == "__main__":
    base.main()
