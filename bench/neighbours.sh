#!/usr/bin/env bash
# Measures how much longer a sweep takes while other processes run.
# Usage: bench/neighbours.sh [--rounds 3]
# Times a short sweep of depth_stability: alone; two sweeps at once; next to a process that keeps one core busy; next to
# such a process with the lowest priority (nice 19). Prints the median time of each case and the ratio of this time to
# the time alone. If one sweep uses all cores, two sweeps at once take at least 2 times as long. Next to a busy process,
# the result depends on the share of the cores that the system gives to each process.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
rounds=3
case "${1-}" in
  '') ;;
  --rounds)
    rounds=${*:2}
    [[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "error: --rounds expects an integer of at least 1, got '$rounds'" >&2; exit 2; }
    ;;
  --help | -h) sed -n '2,7s/^# //p' "$0"; exit ;;
  *) echo "error: expected no argument, --rounds or --help, got '$*'" >&2; exit 2 ;;
esac
program=$root/build/release/bin/depth_stability
[ -x "$program" ] || { echo "error: $program not found; build it: ./test.sh, or cmake --build --preset release --target depth_stability" >&2; exit 1; }

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

sweep() { "$program" --gates fixup,pre,post --depths 4,12 --steps 30 --dim 32 --out "$work/$1" --overwrite >"$work/$1.log" 2>&1 || { cat "$work/$1.log" >&2; exit 1; }; }
alone() { sweep a; }
two() {
  sweep a & local other=$!
  sweep b
  wait "$other"
}
beside() {  # arguments: a command that keeps a core busy
  "$@" & local other=$!
  sweep a
  kill "$other"
  wait "$other" 2>/dev/null || true
}
busy() { beside sh -c 'while :; do :; done'; }
niced() { beside nice -n 19 sh -c 'while :; do :; done'; }

for ((round = 0; round < rounds; round++)); do
  for setting in alone two busy niced; do
    start=$(date +%s.%N)
    $setting
    awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }' >>"$work/$setting"
  done
done

sed -n 's/.*"device": "\(.*\)".*/\1/p' "$work/a/run.json" | head -1
median() { sort -g "$work/$1" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
base=$(median alone)
row() { awk -v what="$2" -v s="$(median "$1")" -v base="$base" 'BEGIN { printf "%-38s %7.2f s   %.2f times\n", what, s, s / base }'; }
row alone "one sweep alone"
row two "two at once"
row busy "with a process that keeps a core busy"
row niced "the same with the lowest priority"
