"""Runs training steps of the real frameworks on the phantom card and prints what their allocator counted.

usage: measure.py < jobs.jsonl > rows.jsonl      (under run.sh; AT_ONCE jobs at a time, default 1)

A job is {"id", "config", "job"} (models.py). A row is the job with the allocator's counts of the second step: "requested" as the tensors
asked, "bytes" as memory_allocated counts, whole blocks; at the end of each phase, the highest of each phase, and the job's largest
memory_reserved. A job that cannot run gives a row with "error", one that runs out of memory a row with "oom"."""
import contextlib
import gc
import importlib
import json
import os
import sys
import tempfile
import traceback

import torch

import images
import models
import optimizers

CUDA = torch.cuda
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
ENDS = ("forward", "backward", "step", "zero")
PEAKS = ("forward", "backward", "clip", "step")
FAMILIES = ("bloom", "cohere", "falcon", "gemma", "gemma2", "gemma3", "glm4", "gpt2", "gpt_neox", "granite", "llama", "mistral", "mixtral",
            "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "qwen3_moe", "stablelm", "starcoder2")


class Meter:
    """Highest and last counts of each phase; a phase seen again replaces the earlier one."""

    KEYS = {"bytes": "allocated_bytes", "requested": "requested_bytes"}

    def __init__(self):
        self.current = None
        self.end = {kind: {} for kind in self.KEYS}
        self.peak = {kind: {} for kind in self.KEYS}

    def live(self):
        stats = CUDA.memory_stats()
        return {kind: stats[key + ".all.current"] for kind, key in self.KEYS.items()}

    def phase(self, name):
        stats = CUDA.memory_stats()
        if self.current is not None:
            for kind, key in self.KEYS.items():
                self.end[kind][self.current] = stats[key + ".all.current"]
                self.peak[kind][self.current] = stats[key + ".all.peak"]
        CUDA.reset_peak_memory_stats()
        self.current = name

    def row(self, weights):
        return self.row_of(weights, ENDS, PEAKS, (*PEAKS, "zero"))

    def row_of(self, weights, ends, peaks, all_peaks):
        result = {}
        for kind in self.KEYS:
            row = {"weights": weights[kind]}
            row.update({"after_" + name: self.end[kind][name] for name in ends})
            row.update({"peak_" + name: self.peak[kind][name] for name in peaks})
            row["peak"] = max(self.peak[kind][name] for name in all_peaks)
            result[kind] = row
        result["bytes"]["reserved"] = CUDA.memory_stats()["reserved_bytes.all.peak"]
        return result


class StepMeter(Meter):
    """A step goes through its phases again and again (micro-batches, a pipeline's order): of each the highest counts, and its last end."""

    def __init__(self, phases):
        super().__init__()
        self.phases = phases

    def restart(self):
        self.phase(None)
        self.end = {kind: {} for kind in self.KEYS}
        self.peak = {kind: {} for kind in self.KEYS}

    def phase(self, name):
        before = {kind: dict(peaks) for kind, peaks in self.peak.items()}
        super().phase(name)
        for kind, peaks in before.items():
            for phase, peak in peaks.items():
                self.peak[kind][phase] = max(self.peak[kind][phase], peak)

    def row(self, weights):
        return self.row_of(weights, self.phases, self.phases, self.phases)


def attention_backend(job):
    kind = {"sdpa-math": "MATH", "mem-efficient": "EFFICIENT_ATTENTION"}.get(job.get("attention"))
    if kind is None:
        return contextlib.nullcontext()
    return torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, kind))


def autocast(job):
    dtype = AUTOCAST.get(job.get("precision", "amp-bf16"))
    return contextlib.nullcontext() if dtype is None else torch.autocast("cuda", dtype=dtype)


def micro_batch(model, optimizer, job, meter):
    accumulate = job.get("accumulate", 1)
    ids = torch.randint(0, 100, (job.get("batch", 1), job.get("seq", 2048)), device="cuda")
    classifies = job.get("stage") == "classification" or (model.config.architectures or [""])[0].endswith("ForSequenceClassification")
    labels = ids[:, 0] % model.config.num_labels if classifies else ids
    mask = {"attention_mask": torch.ones_like(ids)} if job.get("attention_mask") else {}
    pictures = images.inputs(model, job, ids)
    meter.phase("forward")
    with autocast(job), attention_backend(job):
        loss = model(input_ids=ids, labels=labels, **mask, **pictures)["loss"]
    if accumulate > 1:
        loss = loss / accumulate
    meter.phase("backward")
    with attention_backend(job):
        loss.backward()
    if hasattr(optimizer, "after_backward"):
        optimizer.after_backward()


def step(model, optimizer, job, meter):
    for _ in range(job.get("accumulate", 1)):
        micro_batch(model, optimizer, job, meter)
    meter.phase("clip")
    if job.get("clip", True):
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    meter.phase("step")
    optimizer.step()
    meter.phase("zero")
    optimizer.zero_grad(set_to_none=True)
    meter.phase("between")


def measure(row):
    job = row["job"]
    meter = Meter()
    CUDA.empty_cache()
    meter.phase("build")
    model = models.build(row["config"], job)
    parameters = sum(p.numel() for p in model.parameters())
    model = models.prepare(images.replace(model, job), job)
    gc.collect()
    CUDA.empty_cache()
    optimizer = optimizers.make(model, job)
    weights = meter.live()
    for _ in range(2):
        step(model, optimizer, job, meter)
    result = {"id": row["id"], "config": row["config"], "job": job,
              "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad)}
    if not models.is_quantized(job):
        result["parameters"] = parameters
    return {**result, **meter.row(weights)}


def answer(work, row):
    try:
        return work(row)
    except torch.OutOfMemoryError as error:
        return {"id": row["id"], "oom": str(error)[:300]}
    except Exception as error:  # a job that cannot run is a row too
        return {"id": row["id"], "error": f"{type(error).__name__}: {error}"[:400], "where": traceback.format_exc()[-700:]}


def load_frameworks():
    """Before the forks, so that each child has them at once."""
    for name in ("bitsandbytes", "liger_kernel.transformers", "peft"):
        importlib.import_module(name)
    for family in FAMILIES:
        importlib.import_module(f"transformers.models.{family}.modeling_{family}")


def child(work, row, path):
    CUDA._is_in_bad_fork = lambda: False  # the phantom card is plain memory: a fork owns a copy of it
    with open(path, "w", encoding="utf-8") as out:
        out.write(json.dumps(answer(work, row)))
    os._exit(0)


def serve(work):
    """Each row of standard input in a process of its own: no patch, cache or leak of one reaches the next."""
    load_frameworks()
    at_once, running = int(os.environ.get("AT_ONCE", "1")), {}
    with tempfile.TemporaryDirectory() as folder:

        def collect(left):
            while len(running) > left:
                pid, _ = os.wait()
                row, path = running.pop(pid)
                died = json.dumps({"id": row["id"], "error": "its process died"})
                text = open(path, encoding="utf-8").read() if os.path.exists(path) else died
                print(text or died, flush=True)

        for number, line in enumerate(sys.stdin):
            row = json.loads(line)
            collect(at_once - 1)
            path = os.path.join(folder, str(number))
            pid = os.fork()
            if pid == 0:
                child(work, row, path)
            running[pid] = (row, path)
        collect(0)


def serve_or_show_peak(work, load):
    """The main() of a script with work(row) and load() of its own: rows from standard input, or the highest moment of one (--peak ROW [PHASE])."""
    global load_frameworks, measure
    if sys.argv[1:2] != ["--peak"]:
        load_frameworks = load
        return serve(work)
    import peak
    measure = work
    del sys.argv[1]
    return peak.main()


if __name__ == "__main__":
    serve(measure)
