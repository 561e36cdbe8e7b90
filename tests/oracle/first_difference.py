"""Prints where the events of the real allocator and those of membill's model of the same job part.

usage: first_difference.py EVENTS MODELLED [COUNT [PHASE [SMALLEST]]]

EVENTS: what trace.py printed. MODELLED: the program membill_modelled_events. COUNT: so many differences instead of the first alone; after
each the two are aligned again. PHASE: the one to begin with (default forward; build: the whole job). SMALLEST: bytes of the smallest
tensor that counts (default 1048577: those of the allocator's large pool).
Frees between two allocations count in any order: the allocator merges them to the same. Sizes are compared as blocks of 512 bytes."""
import bisect
import dataclasses
import json
import subprocess
import sys
import tempfile

BLOCK = 512
LARGE = (1 << 20) + 1
AHEAD, ALIKE = 400, 12  # how far to look for a place where so many allocations agree again


@dataclasses.dataclass
class Allocation:
    number: int
    size: int
    where: str
    phase: str
    freed_before: int | None = None  # the allocation that follows its free

    def text(self):
        return f"{self.size:>14,}  {self.where}"


def allocations(lines, phase, smallest):
    """The allocations from the first `phase` on, each with the place of its free."""
    result, living, now, begun = [], {}, "", False
    for line in lines:
        if line["do"] == "phase":
            now = line["where"]
            begun = begun or now == phase
        elif line["do"] == "alloc":
            if line["bytes"] < smallest:
                continue
            made = Allocation(len(result), -(-line["bytes"] // BLOCK) * BLOCK, line["where"], now)
            living[line["id"]] = made
            if begun:
                result.append(made)
        elif line["do"] == "free" and line["id"] in living:
            living.pop(line["id"]).freed_before = len(result)
    for made in result:
        if made.freed_before == len(result):
            made.freed_before = None  # as the process ends
    return result


def modelled(program, row):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(json.dumps(row))
        file.flush()
        done = subprocess.run([program, file.name], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def aligned_again(real, model, i, j):
    """The nearest places from which on both ask for the same."""
    sizes, others = [a.size for a in real[i:i + 2 * AHEAD]], [a.size for a in model[j:j + 2 * AHEAD]]
    for both in range(1, 2 * AHEAD):
        for ahead in range(max(0, both - AHEAD), min(both, AHEAD) + 1):
            mine, other = sizes[ahead:ahead + ALIKE], others[both - ahead:both - ahead + ALIKE]
            if mine and mine == other:
                return i + ahead, j + both - ahead
    return len(real), len(model)


def show(real, model, where):
    print(f"{where.phase}, allocation {where.number}")
    for name, part in (("really", real), ("modelled", model)):
        for allocation in part[:12]:
            print(f"  {name:<9}{allocation.text()}")
        if len(part) > 12:
            print(f"  {name:<9}... {len(part) - 12} more")


def pair(real, model, count):
    """Pairs of the same allocation; those that one side lacks are told as differences."""
    pairs, i, j, found = [], 0, 0, 0
    while i < len(real) and j < len(model):
        if real[i].size == model[j].size:
            pairs.append((real[i], model[j]))
            i, j = i + 1, j + 1
            continue
        if (found := found + 1) > count:
            return pairs, found
        to_i, to_j = aligned_again(real, model, i, j)
        show(real[i:to_i], model[j:to_j], real[i])
        i, j = to_i, to_j
    return pairs, found


def freed_elsewhere(pairs):
    """Pairs whose blocks are not given back between the same two others, in the order of the earlier free."""
    mine, others = [real.number for real, _ in pairs], [model.number for _, model in pairs]

    def place(numbers, number):
        return len(numbers) + 1 if number is None else bisect.bisect_left(numbers, number)

    found = []
    for real, model in pairs:
        really, said = place(mine, real.freed_before), place(others, model.freed_before)
        if really != said:
            found.append((min(really, said), real, model))
    return sorted(found, key=lambda entry: entry[0])


def next_one(allocation, everything):
    if allocation.freed_before is None:
        return "never freed"
    follower = everything[allocation.freed_before]
    return f"freed before {follower.number}: {follower.text().strip()}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    phase = sys.argv[4] if len(sys.argv) > 4 else "forward"
    smallest = int(sys.argv[5]) if len(sys.argv) > 5 else LARGE
    with open(sys.argv[1], encoding="utf-8") as file:
        recorded = [json.loads(line) for line in file]
    real = allocations(recorded, phase, smallest)
    model = allocations(modelled(sys.argv[2], recorded[-1]), phase, smallest)
    pairs, found = pair(real, model, count)
    for _, mine, other in freed_elsewhere(pairs)[:max(0, count - found)]:
        print(f"{mine.phase}, allocation {mine.number}: {mine.text().strip()} | {other.where}")
        print(f"  really    {next_one(mine, real)}\n  modelled  {next_one(other, model)}")
    print(f"{len(real)} allocations really, {len(model)} modelled, {len(pairs)} alike, {len(freed_elsewhere(pairs))} of them freed elsewhere")


if __name__ == "__main__":
    main()
