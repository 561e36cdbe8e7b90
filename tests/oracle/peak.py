"""Names the tensors that are alive at the highest moment of one job's last step, with the code that made them.

usage: peak.py JOB [forward | backward | clip | step]        a row as JSON, or a file whose first line is one (under run.sh)"""
import collections
import json
import sys

import events


def phases_of_last_step(marks, count):
    last = max(index for index, (_, name) in enumerate(marks) if name == "forward")
    ends = [begin for begin, _ in marks[last + 1:]] + [count]
    return [(name, begin, end) for (begin, name), end in zip(marks[last:], ends)]


def highest(trace, spans):
    """(phase, bytes, the events of what lives) of the highest moment within the spans."""
    live, total, best = {}, 0, ("", -1, {})
    for index, event in enumerate(trace):
        if event["action"] == "alloc":
            live[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            total -= live.pop(event["addr"])["size"]
        if total <= best[1]:
            continue
        inside = [name for name, begin, end in spans if begin <= index < end]
        if inside:
            best = (inside[0], total, dict(live))
    return best


def main():
    events.fail_without_argument(__doc__)
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    row, trace, marks = events.record(events.read_job(sys.argv[1]), "all")
    spans = [span for span in phases_of_last_step(marks, len(trace)) if wanted in (None, span[0])]
    phase, total, live = highest(trace, spans)
    size, count = collections.Counter(), collections.Counter()
    for event in live.values():
        code = events.code_of(event["frames"])
        size[code] += event["size"]
        count[code] += 1
    print(json.dumps(row))
    print(f"{total:,} bytes live in {phase}")
    for code, part in size.most_common(40):
        print(f"{part:>16,}  {count[code]:>5}  {code}")


if __name__ == "__main__":
    main()
