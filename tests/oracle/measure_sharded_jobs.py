"""Runs one rank of many of jobs whose models this folder builds: packed weights, trained rows; one JSON line per job.

usage: measure_sharded_jobs.py < rows.jsonl > measured.jsonl

rows: those of data/measurements/oracle-sharded.jsonl whose source is this script; `run` is what measure_sharded.py, which is to be on
PYTHONPATH, calls a run."""
import measure_sharded as base
import torch

import models


def prepare(row, run):
    return models.prepare(models.build(row["config"], row["job"]), row["job"])


def measure(row, run):
    return {**{key: row[key] for key in ("config", "job", "run")}, **REAL(row, run),
            "source": "tests/oracle/measure_sharded_jobs.py on the phantom GPU, torch " + torch.__version__}


base.prepare = prepare
REAL, base.measure_engine = base.measure_engine, measure

if __name__ == "__main__":
    base.main()
