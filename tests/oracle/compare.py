"""Compares measured rows with what membill says of the same jobs: requested bytes of each phase, allocated and reserved peaks.

usage: compare.py MEMBILL < rows.jsonl        MEMBILL: the program

A line a job with its worst phase, then median, 95th percentile and worst of each figure, in percent. Jobs that membill does not bill, or
that could not be measured, are counted."""
import collections
import json
import math
import statistics
import subprocess
import sys
import tempfile

BEFORE = {"peak_forward": ("forward", "loss"), "peak_backward": ("backward",), "peak_clip": ("clip",), "peak_step": ("step",)}


def estimate(program, row):
    """membill's report of the row's job; None when it does not answer, with its reason on stderr."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"model": {"config": row["config"]}, **row["job"]}, file)
        file.flush()
        done = subprocess.run([program, "estimate", "--job", file.name, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(row["id"], done.stderr.strip(), file=sys.stderr)
        return None
    return json.loads(done.stdout)


def figures(report):
    """The report's figures under the keys of a row."""
    highest = {moment["name"]: moment["requested"] for moment in report["moments"]}
    found = {key: max(highest.get(name, 0) for name in names) for key, names in BEFORE.items()}
    found["peak"] = report["totals"]["requested"]["likely"]
    found["allocated peak"] = report["totals"]["allocated"]["likely"]
    found["reserved"] = report["totals"]["reserved"]["likely"]
    return found


def errors(row, report):
    measured = {key: row["requested"][key] for key in (*BEFORE, "peak")}
    measured.update({"allocated peak": row["bytes"]["peak"], "reserved": row["bytes"]["reserved"]})
    said = figures(report)
    return {key: 100 * (said[key] - value) / value for key, value in measured.items() if value}


def summary(all_errors):
    for key, values in all_errors.items():
        sizes = sorted(abs(value) for value in values)
        at_95 = sizes[min(len(sizes) - 1, math.ceil(0.95 * len(sizes)) - 1)]
        print(f"{key:<16} rows {len(sizes):>4}  median {statistics.median(sizes):8.4f} %  95th {at_95:8.4f} %  worst {sizes[-1]:8.4f} %")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    all_errors, left_out = collections.defaultdict(list), collections.Counter()
    for line in sys.stdin:
        row = json.loads(line)
        if "requested" not in row:
            left_out["not measured"] += 1
            continue
        report = estimate(sys.argv[1], row)
        if report is None:
            left_out["not billed"] += 1
            continue
        own = errors(row, report)
        worst = max((key for key in own if key not in ("allocated peak", "reserved")), key=lambda key: abs(own[key]))
        print(f"{row['id']:<48} {worst:<14} {own[worst]:+9.4f} %")
        for key, value in own.items():
            all_errors[key].append(value)
    summary(all_errors)
    for why, count in left_out.items():
        print(f"{why}: {count}")


if __name__ == "__main__":
    main()
