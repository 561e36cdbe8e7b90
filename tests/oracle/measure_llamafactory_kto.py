"""Runs KTO by LLaMA-Factory 0.9.5's own trainer on the phantom card, over batches whose rows hold no padding.

usage: run.sh measure_llamafactory_kto.py < row.jsonl > measured.jsonl

A row is one of oracle-stages.jsonl (lf-kto), without checkpoints. Needs what measure_trl_rows.py needs for TRL 0.24, and llamafactory. Give
each row a process of its own."""
import gc
import json
import sys

import measure_trl_rows as rows
import torch

CUDA = torch.cuda


def batch_of(job):
    tokens, counted = job["seq"], job["completion"]

    def make(features):
        count = len(features)
        ids = torch.zeros((count, tokens), dtype=torch.int64)
        labels = ids.clone()
        labels[:, :tokens - counted] = -100
        mask = torch.ones_like(ids)
        one = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        tags = torch.tensor([number % 2 == 0 for number in range(count)])
        return {**one, **{"kl_" + key: value.clone() for key, value in one.items()}, "kto_tags": tags}

    return make


def count_halves(count):
    """The card does not say how many rows are desirable: half of them."""
    def nonzero(self, x):
        if x.dim() != 1 or x.numel() != count:
            return rows.REAL_NONZERO(self, x)
        return torch.empty((1, count // 2), dtype=torch.int64, device=x.device).t()

    rows.HOOKS.append(nonzero)


def built(config, job, weights):
    run = {"weights": weights, "method": "full", "implementation": "hf"}
    return rows.measure_trl.hf.build(config, run)


def trainer_of(row, callbacks):
    import peft
    import transformers
    from llamafactory.hparams import FinetuningArguments
    from llamafactory.train.kto.trainer import CustomKTOTrainer
    job = row["job"]
    arguments = transformers.Seq2SeqTrainingArguments(
        output_dir="/tmp/phantom-out", per_device_train_batch_size=job["batch"], gradient_accumulation_steps=job["accumulate"], max_steps=2,
        bf16=True, logging_steps=10**6, save_strategy="no", report_to=[], optim="adamw_torch", disable_tqdm=True, remove_unused_columns=False)
    model, reference = built(row["config"], job, job["weights"]), None
    if job["method"] == "lora":
        adapter = job["adapter"]
        model = peft.get_peft_model(model, peft.LoraConfig(r=adapter["rank"], lora_alpha=16, target_modules=adapter["targets"],
                                                           lora_dropout=adapter["dropout"], task_type="CAUSAL_LM"))
    else:
        reference = built(row["config"], job, "bf16").requires_grad_(False)
    return CustomKTOTrainer(model=model, ref_model=reference, finetuning_args=FinetuningArguments(stage="kto", disable_shuffling=True),
                            processor=None, tokenizer=rows.measure_trl.tokenizer(), args=arguments, callbacks=callbacks,
                            train_dataset=[{"number": number} for number in range(8 * job["batch"])], data_collator=batch_of(job))


def measure(row):
    import transformers
    meter = rows.Meter()
    count_halves(row["job"]["batch"])
    rows.measure_trl.old_peft_new_torchao()

    class Watch(transformers.TrainerCallback):
        def on_step_begin(self, *_, **__):
            gc.collect()
            meter.restart("forward")

        def on_pre_optimizer_step(self, *_, **__):
            meter.phase("step")

        def on_optimizer_step(self, *_, **__):
            meter.phase("zero")

        def on_step_end(self, *_, **__):
            meter.phase("between")

    trainer = trainer_of(row, [Watch()])
    gc.collect()
    CUDA.empty_cache()
    weights = CUDA.memory_allocated()
    real = trainer.accelerator.backward

    def backward(loss, **arguments):
        meter.phase("backward")
        real(loss, **arguments)
        meter.phase("clip")

    trainer.accelerator.backward = backward
    trainer.train()
    meter.phase(None)
    counts = meter.bytes(weights)
    return counts, counts.pop("requested")


def main():
    row = json.loads(sys.stdin.readline())
    counts, requested = measure(row)
    print(json.dumps({**{key: row[key] for key in ("id", "config", "job")}, "bytes": counts, "requested": requested,
                      "source": "llamafactory 0.9.5 on the phantom GPU (tests/oracle/measure_llamafactory_kto.py), torch " + torch.__version__}))


if __name__ == "__main__":
    main()
