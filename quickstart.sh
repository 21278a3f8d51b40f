#!/usr/bin/env bash
# Installs missing packages, builds depth_stability and trains six residual methods at depths 6 and 48, each at its own
# learning rate. The rates were chosen beforehand on seed 0 (docs/results/readme.jsonl); the script trains seed 1.
# Usage: ./quickstart.sh [OPTIONS OF depth_stability]      such as --seeds 1..6, --out DIR, --help
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

# The rates are those of the preset. With other methods, depths, data or training, the program chooses or has its own.
rates=(--rates-from "$root/docs/results/readme.jsonl")
for option in "$@"; do
  case "$option" in
    --seeds* | --out* | --overwrite | --jobs* | --threads* | --no-progress | --json | --dry-run | --checkpoint-every*) ;;
    -*) rates=() ;;
  esac
done
exec "$root/build/release/bin/depth_stability" --preset quick "${rates[@]}" "$@"
