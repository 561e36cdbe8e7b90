"""Random requests to the real caching allocator, for tests/unit/allocator_test.cpp: drive.py SEED COUNT SHAPE [FRACTION]

usage (phantom GPU of shared/oracle; no job is run):
    env PYTORCH_ALLOC_CONF=... PHANTOM_BYTES=... LD_PRELOAD=.../libphantom.so LD_LIBRARY_PATH=... python drive.py 1 1500 z

SHAPE: letters; s two streams, z sizes that often repeat, w many live blocks.  FRACTION: the process's memory fraction.

Lines: "a BYTES STREAM" allocates block number 0, 1, 2, ...; "x BYTES STREAM" is a request that ran out of memory (it takes
a number too); "f N" frees block N; "e" empties the cache; "= ..." gives, after every tenth operation, allocated, reserved,
requested and inactive split bytes, segments, retries and failures as the real allocator counts them."""
import os
import random
import sys

import torch

SEED, COUNT, SHAPE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
r = random.Random(SEED)


def size():
    k = r.random()
    if "z" in SHAPE and k < .3:
        return r.choice([1 << 20, 2 << 20, 5 << 20, 12 << 20, 12 << 20, 40 << 20])
    if k < .35:
        return int(2 ** r.uniform(0, 20))
    if k < .75:
        return int(2 ** r.uniform(19, 24))
    return int(2 ** r.uniform(23, 27))


def counters():
    s = torch._C._cuda_memoryStats(0)
    now = [s[k]["all"]["current"] for k in ("allocated_bytes", "reserved_bytes", "requested_bytes", "inactive_split_bytes", "segment")]
    return " ".join(map(str, now + [s["num_alloc_retries"], s["num_ooms"]]))


def main():
    torch.cuda.init()
    print("# settings", os.environ.get("PYTORCH_ALLOC_CONF", ""))
    print("# capacity", os.environ["PHANTOM_BYTES"])
    if len(sys.argv) > 4:
        torch.cuda.set_per_process_memory_fraction(float(sys.argv[4]))
        print("# fraction", sys.argv[4])
    streams = sorted([0, torch.cuda.Stream().cuda_stream]) if "s" in SHAPE else [0]
    live, count, limit = {}, 0, 300 if "w" in SHAPE else 120
    for step in range(COUNT):
        if r.random() < .004:
            torch.cuda.empty_cache()
            print("e")
        elif len(live) < limit * (0.3 + 0.7 * r.random()) or not live:
            stream, bytes_ = r.choice(streams), size()
            try:
                live[count] = torch.cuda.caching_allocator_alloc(bytes_, 0, stream)
                print("a", bytes_, streams.index(stream))
            except torch.OutOfMemoryError:
                print("x", bytes_, streams.index(stream))
            count += 1
        else:
            n = r.choice(list(live)) if r.random() < .6 else max(live)
            torch.cuda.caching_allocator_delete(live.pop(n))
            print("f", n)
        if step % 10 == 9:
            print("=", counters())


if __name__ == "__main__":
    main()
