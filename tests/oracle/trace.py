"""Prints the allocator's events of one job, one JSON line each, in order.

usage: trace.py JOB [all]        a row as JSON, or a file whose first line is one (under run.sh); all: nodes of the backward by name, slowly

{"do": "alloc" | "free" | "segment_alloc" | "segment_free" | "phase" | "end", "id": number of the block, "bytes": as asked for, "where": code}.
A model of the allocator that is given the alloc and free events must open the same segments."""
import json
import sys

import events


def lines(trace, marks):
    numbers, count, mark = {}, 0, 0
    for index, event in enumerate(trace):
        while mark < len(marks) and marks[mark][0] <= index:
            yield {"do": "phase", "where": marks[mark][1]}
            mark += 1
        action = event["action"]
        if action == "alloc":
            count += 1
            numbers[event["addr"]] = count
            yield {"do": "alloc", "id": count, "bytes": event["size"], "where": events.code_of(event["frames"])}
        elif action == "free_completed":
            yield {"do": "free", "id": numbers.pop(event["addr"], 0), "bytes": event["size"]}
        elif action in ("segment_alloc", "segment_free"):
            yield {"do": action, "bytes": event["size"]}


def main():
    events.fail_without_argument(__doc__)
    row, trace, marks = events.record(events.read_job(sys.argv[1]), "all" if "all" in sys.argv[2:] else "python")
    for line in lines(trace, marks):
        print(json.dumps(line))
    print(json.dumps({"do": "end", **row}))


if __name__ == "__main__":
    main()
