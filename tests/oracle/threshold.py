"""The smallest card on which each job survives, by bisection with the real allocator's own retries.

usage: threshold.py < jobs.jsonl > rows.jsonl        (under run.sh)

"survives" and "dies" are bytes of the card, less than one part in 500 apart; what the CUDA context holds is not counted."""
import ctypes
import gc
import os

import torch

import measure

ROOM = 1 << 46
STEP = 1 << 20

phantom = ctypes.CDLL(os.environ["LD_PRELOAD"].split(":")[0])
phantom.phantom_set_bytes.argtypes = [ctypes.c_size_t]


def run(row, capacity):
    """The row on a card of that size; None when it runs out of memory."""
    gc.collect()
    torch.cuda.empty_cache()
    phantom.phantom_set_bytes(capacity)
    try:
        return measure.measure(row)
    except torch.OutOfMemoryError:
        return None
    finally:
        phantom.phantom_set_bytes(ROOM)
        gc.collect()


def bisect(row):
    roomy = run(row, ROOM)
    dies, survives = roomy["bytes"]["peak"], roomy["bytes"]["reserved"]
    while survives - dies > max(STEP, survives // 500):
        middle = (dies + survives) // 2
        if run(row, middle) is None:
            dies = middle
        else:
            survives = middle
    return {"id": row["id"], "config": row["config"], "job": row["job"], "survives": survives, "dies": dies, "bytes": roomy["bytes"]}


if __name__ == "__main__":
    measure.serve(bisect)
