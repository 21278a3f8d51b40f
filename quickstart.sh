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

# Other options may ask for other rates: with --gates, --depths or --lrs, the ledger may lack a rate that is needed.
rates=(--rates-from "$root/docs/results/readme.jsonl")
for option in "$@"; do
  case "$option" in
    --gates | --depths | --lrs | --at-lr | --rates-from | --resume | --rebuild | --config | --preset | --help | -h | --version) rates=() ;;
  esac
done
exec "$root/build/release/bin/depth_stability" --preset quick "${rates[@]}" "$@"
