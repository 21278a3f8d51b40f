#!/usr/bin/env bash
# Measures whether the time of a step grows linearly with depth, and the cost of a step at depth 10,000.
# Usage: bench/depth.sh [--quick]       --quick: depth 1,000 instead of 10,000
# Times a step at depths 192 and 384 in turn (dim 64, 17 tokens, batch 8) and prints the ratio (2 means linear).
# Then prints seconds per step and peak memory of two methods at depth 10,000 (dim 32, 5 tokens, batch 8).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
case "$*" in
  '') deep=10000 ;;
  --quick) deep=1000 ;;
  --help | -h) sed -n '2,5s/^# //p' "$0"; exit ;;
  *) echo "error: expected no argument, --quick or --help, got '$*'" >&2; exit 2 ;;
esac
program=$root/build/release/bin/bench_step
[ -x "$program" ] || { echo "error: $program not found; build it: ./test.sh, or cmake --build --preset release --target bench_step" >&2; exit 1; }

field() { sed -n '$s/.*"'"$1"'":\([-0-9.e+]*\).*/\1/p'; }
least() { sort -g | head -1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for round in 1 2 3; do
  for depth in 192 384; do
    "$program" --depth "$depth" --dim 64 --heads 2 --image 32 --patch 8 --batch 8 --gate layerscale --steps 8 --warmup 2 >"$work/result"
    field min_s <"$work/result" >>"$work/$depth"
    field peak_bytes <"$work/result" >>"$work/$depth.bytes"
  done
done
awk -v a="$(least <"$work/192")" -v b="$(least <"$work/384")" -v am="$(least <"$work/192.bytes")" -v bm="$(least <"$work/384.bytes")" 'BEGIN {
  printf "depth 192: %.4f s per step, %.0f MiB\ndepth 384: %.4f s per step, %.0f MiB\nratio:     %.2f (2 is linear)\n", a, am / 2^20, b, bm / 2^20, b / a }'

for gate in fixup layerscale; do
  "$program" --depth "$deep" --dim 32 --heads 2 --image 32 --patch 16 --batch 8 --gate "$gate" --steps 2 --warmup 1 >"$work/result"
  awk -v gate="$gate" -v depth="$deep" -v s="$(field min_s <"$work/result")" -v bytes="$(field peak_bytes <"$work/result")" \
    -v loss="$(field loss <"$work/result")" 'BEGIN { printf "depth %d, %s: %.2f s per step, peak %.2f GiB, loss %s\n", depth, gate, s, bytes / 2^30, loss }'
done
