#!/usr/bin/env bash
# Compares one training step of Plumb with one of PyTorch (eager and compiled): time and memory, in alternating rounds.
# The models are ViTs, and with --models detr a detector.
# Usage: bench/compare.sh [--rounds 3] [--models dim192,dim64,dim384,detr] [--dtype fp32,bf16] [--jax] [--quick] [--csv FILE]
#                         [--python PATH]
#        bench/compare.sh --help         all options
# The script needs a Python with torch and numpy, and with scipy for detr: --python PATH, $PYTHON, or .venv/bin/python
# in this repository. These commands create the last one:
#   python3 -m venv .venv && .venv/bin/pip install torch numpy scipy
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

python=${PYTHON:-}
[ -n "$python" ] || { [ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python; } || python=python3
options=()
own=1
while [ $# -gt 0 ]; do
  case "$1" in
    --python) [ $# -gt 1 ] || { echo "error: --python expects a path, got nothing" >&2; exit 2; }; python=$2; shift 2 ;;
    --python=*) python=${1#*=}; shift ;;
    --program | --program=*) own=0; options+=("$1"); shift ;;
    --help | -h) exec python3 "$root/bench/compare.py" --help ;;
    *) options+=("$1"); shift ;;
  esac
done
command -v "$python" >/dev/null || { echo "error: '$python' (from --python, \$PYTHON or .venv) not found; name a Python with torch and numpy: --python PATH" >&2; exit 1; }
if ! why=$("$python" -c 'import numpy, torch' 2>&1); then
  cat >&2 <<END
error: $python cannot import torch and numpy (${why##*$'\n'}). Create an environment with both, then run this again:
  python3 -m venv "$root/.venv" && "$root/.venv/bin/pip" install torch numpy
or name a Python with both: --python PATH
END
  exit 1
fi

if [ "$own" = 1 ]; then
  [ -f "$root/build/release/build.ninja" ] || "$root/tools/install.sh" test >&2
  (
    cd "$root"
    mkdir -p build
    cmake --preset release -DPLUMB_BUILD_TESTS=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
    echo "building bench_step and bench_detr (a few minutes the first time)"
    cmake --build --preset release --target bench_step bench_detr
  ) >&2
fi

exec "$python" "$root/bench/compare.py" "${options[@]}"
