#!/usr/bin/env bash
# Exchanges weights with timm in both directions and compares logits. ./test.sh does not run this
# script, because the script installs torch and timm from PyPI.
# Usage: tools/check_timm.sh [PYTHON]      PYTHON: a Python with torch, timm and safetensors; by default a virtual
# environment is created in build/timm.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-build/timm/bin/python}
if [ $# -eq 0 ] && ! "$python" -c 'import safetensors, timm, torch' 2>/dev/null; then
  python3 -m venv build/timm
  build/timm/bin/pip install -q --disable-pip-version-check torch timm safetensors numpy
fi
cmake --preset release -DPLUMB_BUILD_TESTS=ON >/dev/null
cmake --build build/release --target weights_tool --target vit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tools/check_timm.py build/release/bin "$work"
