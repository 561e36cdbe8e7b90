"""Measures rows of data/measurements/oracle.jsonl, oracle-families.jsonl, oracle-methods.jsonl and oracle-vision.jsonl again and says which differ.

usage: regenerate.py [PART]        (under run.sh) rows whose id contains PART; all when not given

With AT_ONCE jobs at a time. Prints the measured rows on standard output, in the form of the file, and differences on standard error;
exits 1 when there are any."""
import io
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "data/measurements"
FILES = ("oracle.jsonl", "oracle-families.jsonl", "oracle-methods.jsonl", "oracle-vision.jsonl")


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = [line for name in FILES for line in (FOLDER / name).open(encoding="utf-8")]
    known = {row["id"]: row for row in map(json.loads, lines) if part in row["id"]}
    jobs = "".join(json.dumps(row) + "\n" for row in known.values())
    measure = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("measure.py"))], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    measured, _ = measure.communicate(jobs)
    different = 0
    for line in io.StringIO(measured):
        row = json.loads(line)
        print(line, end="")
        old = known[row["id"]]
        if any(row.get(key) != old[key] for key in ("bytes", "requested")):
            different += 1
            print(row["id"], "differs:", row.get("error") or row.get("oom") or "other counts", file=sys.stderr)
    print(f"{len(known)} rows, {different} differ", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
