#!/bin/sh
# Measures COUNT new random jobs and compares them with membill: fresh.sh COUNT SEED MEMBILL [ROWS]
# Jobs that need more than the phantom card are left out. ROWS: where the measured rows are kept (default: rows-SEED.jsonl).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rows=${4:-rows-$2.jsonl}
"${PYTHON:-python3}" "$here/grid.py" "$1" "$2" | "$here/run.sh" measure.py > "$rows"
"${PYTHON:-python3}" "$here/compare.py" "$3" < "$rows"
