#!/usr/bin/env bash
# Compares the average precision of bin/coco_ap with that of pycocotools, on random results of many shapes. ./test.sh
# does not run this script, because the script installs pycocotools from PyPI.
# Usage: tools/check_coco.sh [PYTHON]      PYTHON: a Python with pycocotools; by default a virtual environment is
# created in build/coco.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-build/coco/bin/python}
if [ $# -eq 0 ] && ! "$python" -c 'import pycocotools' 2>/dev/null; then
  python3 -m venv build/coco
  build/coco/bin/pip install -q --disable-pip-version-check pycocotools numpy
fi
cmake --preset release -DPLUMB_BUILD_TESTS=ON >/dev/null
cmake --build build/release --target coco_ap
"$python" tools/check_coco.py build/release/bin/coco_ap
