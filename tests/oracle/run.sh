#!/bin/sh
# Runs a script of this folder on the phantom card: run.sh SCRIPT.py [ARGUMENT...]
# PHANTOM: the folder that phantom/build.sh filled (default: build/ here). PYTHON: the interpreter that has PyTorch (default: python3).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
phantom=${PHANTOM:-$here/build}
script=$1
shift
exec env LD_PRELOAD="$phantom/libphantom.so" LD_LIBRARY_PATH="$phantom" HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 \
  "${PYTHON:-python3}" "$here/$script" "$@"
