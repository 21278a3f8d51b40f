#!/usr/bin/env bash
# Builds the library against oneDNN 3.x from PyPI (headers and library) and runs the tests that use oneDNN.
# All files are written to build/onednn3.
# Usage: tools/test_onednn3.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh test
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  as_root=(); [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
fi
prefix=$PWD/build/onednn3/prefix
if [ ! -e "$prefix/include/oneapi/dnnl/dnnl.hpp" ]; then
  python3 -m venv "$prefix"
  "$prefix/bin/pip" install -q --disable-pip-version-check --no-deps onednn-cpu-gomp onednn-devel-cpu-gomp
fi
cmake --preset release -B build/onednn3 -DPLUMB_BUILD_TESTS=ON -DOneDnn_ROOT="$prefix" -DCMAKE_BUILD_RPATH="$prefix/lib"
grep -q "$prefix" build/onednn3/CMakeCache.txt
cmake --build build/onednn3 --target backends_tests ops_tests nn_tests depth_stability
ctest --test-dir build/onednn3 -L 'backends|ops|nn' -j 2 --output-on-failure
build/onednn3/bin/depth_stability --gates pre --depths 1 --steps 2 --batch 4 --dim 8 --no-progress --out "build/onednn3/run-$$" >/dev/null
grep -o 'oneDNN [0-9.]*' "build/onednn3/run-$$/run.json"
