#!/usr/bin/env bash
# Trains two small trials with --tensorboard and reads the event files with TensorBoard's reader. ./test.sh does not run
# this script, because the script installs tensorboard from PyPI.
# Usage: tools/check_tensorboard.sh [PYTHON]      PYTHON: a Python with tensorboard; by default a virtual environment is
# created in build/tensorboard.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-build/tensorboard/bin/python}
if [ $# -eq 0 ] && ! "$python" -c 'import tensorboard' 2>/dev/null; then
  python3 -m venv build/tensorboard
  build/tensorboard/bin/pip install -q --disable-pip-version-check tensorboard 'setuptools<81'
fi
cmake --preset release >/dev/null
cmake --build build/release --target depth_stability
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/release/bin/depth_stability --gates pre,layerscale --depths 2 --dim 16 --heads 2 --steps 30 --tensorboard --no-progress --out "$work/run" >/dev/null
"$python" tools/check_tensorboard.py "$work/run"
