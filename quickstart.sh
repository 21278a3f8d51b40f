#!/usr/bin/env bash
# Installs missing packages, builds depth_stability and trains six residual methods at depths 6 and 48.
# Usage: ./quickstart.sh [OPTIONS OF depth_stability]      such as --seeds 0..2, --out DIR, --help
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)

"$root/tools/install.sh" build
(
  cd "$root"
  options=()
  [ -e build/release/build.ninja ] || options=(-DPLUMB_BUILD_TESTS=OFF)
  mkdir -p build
  cmake --preset release "${options[@]}" >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
  echo "building depth_stability (a few minutes the first time)"
  cmake --build --preset release --target depth_stability
) >&2

exec "$root/build/release/bin/depth_stability" --preset quick "$@"
