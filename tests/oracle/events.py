"""The allocator's own record of one job: what was allocated and freed, in order, and by which code."""
import json
import os
import sys

import torch

import measure

LIMIT = 8_000_000  # events
UNTOLD = ("_device.py", "measure.py", "models.py", "peak.py", "trace.py", "events.py")


def read_job(text):
    """A row as JSON, or a file whose first line is one."""
    return json.loads(text if text.startswith("{") else open(text, encoding="utf-8").readline())


def code_of(frames):
    """The innermost Python lines, or the node of the backward pass that asked for the memory."""
    lines = [f"{os.path.basename(f['filename'])}:{f['line']} {f['name']}" for f in frames
             if f["filename"].endswith(".py") and "/torch/nn/modules/module.py" not in f["filename"]]
    lines = [line for line in lines if not line.startswith(UNTOLD)]
    if lines:
        return " < ".join(lines[:3])
    nodes = [f["name"] for f in frames if "Backward" in f["name"] or "AccumulateGrad" in f["name"]]
    return "autograd: " + (nodes[0].split("(")[0] if nodes else "?")


def record(job, stacks):
    """The row of the job, its events, and the marks of its phases as (index of the next event, name)."""
    marks = []
    begin = measure.Meter.phase

    def phase(self, name):
        begin(self, name)
        marks.append((len(torch.cuda.memory._snapshot()["device_traces"][0]), name))

    torch.cuda.memory._record_memory_history(max_entries=LIMIT, stacks=stacks, context="all")
    measure.Meter.phase = phase
    row = measure.measure(job)
    return row, torch.cuda.memory._snapshot()["device_traces"][0], marks


def fail_without_argument(usage):
    if len(sys.argv) < 2:
        sys.exit(usage)
