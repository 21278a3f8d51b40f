#!/usr/bin/env bash
# Exchanges the weights of small DETRs with PyTorch in both directions, under the names of facebookresearch/detr, and
# compares logits and boxes. ./test.sh does not run this script, because the script installs torch from PyPI.
# Usage: tools/check_detr.sh [PYTHON]      PYTHON: a Python with torch and safetensors; by default a virtual environment
# is created in build/detr.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-build/detr/bin/python}
if [ $# -eq 0 ] && ! "$python" -c 'import safetensors, torch' 2>/dev/null; then
  python3 -m venv build/detr
  build/detr/bin/pip install -q --disable-pip-version-check torch safetensors numpy
fi
cmake --preset release -DPLUMB_BUILD_TESTS=ON >/dev/null
cmake --build build/release --target weights_tool
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tools/check_detr.py build/release/bin "$work"
