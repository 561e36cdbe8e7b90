"""Records the real caching allocator's events of one job in the form that tests/unit/allocator_test.cpp replays.

usage (phantom GPU of shared/oracle, see its README; run in that folder or with it on PYTHONPATH):
    env LD_PRELOAD=.../libphantom.so LD_LIBRARY_PATH=... HF_HUB_OFFLINE=1 PYTHONPATH=shared/oracle \
        python record.py JOBFILE > NAME.txt

Lines: "a BYTES STREAM" allocates block number 0, 1, 2, ... (requested bytes); "f N" frees block N; "e" empties the cache;
"c KEY VALUE" is one of the real allocator's counters at the end of the job, peaks over the whole job.
Only segments freed by an empty_cache appear (the card is larger than the job), so a run of segment_free
or segment_unmap events is one "e". "c survives" and "c dies" were added by hand: card sizes on which the job was seen to
live and to run out of memory, each by a run of its own with PHANTOM_BYTES (llama-full: threshold.py of shared/oracle)."""
import json
import os
import sys

import torch

import measure

KEYS = ("requested_bytes.all.peak", "allocated_bytes.all.peak", "reserved_bytes.all.peak", "active_bytes.all.peak",
        "requested_bytes.all.current", "allocated_bytes.all.current", "reserved_bytes.all.current",
        "inactive_split_bytes.all.current", "segment.all.current", "segment.all.peak", "num_alloc_retries", "num_ooms")


def main():
    job = json.loads(open(sys.argv[1]).readline())
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=8_000_000, context=None, stacks="python")
    measure.M.reset_peak_memory_stats = lambda: None
    row = measure.one(job)
    stats = torch.cuda.memory_stats()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    print("#", json.dumps({"id": job["id"], "config": job["config"], "run": job["run"], "torch": torch.__version__}))
    print("# settings", os.environ.get("PYTORCH_ALLOC_CONF", ""))
    names, count, emptying = {}, 0, False
    for e in trace:
        kind = e["action"]
        if kind in ("segment_free", "segment_unmap"):
            if not emptying:
                print("e")
            emptying = True
            continue
        emptying = False
        if kind == "alloc":
            names[e["addr"]] = count
            count += 1
            print("a", e["size"], 0)
        elif kind == "free_completed":
            print("f", names.pop(e["addr"]))
    for key in KEYS:
        print("c", key, stats[key])
    print(json.dumps(row), file=sys.stderr)


if __name__ == "__main__":
    main()
