#!/usr/bin/env bash
# Kills a sweep repeatedly, resumes it, and compares its results with those of an undisturbed sweep.
# Usage: tools/kill_sweep.sh [N] [--bin DIR] [--signal KILL|INT]      N: number of kills [100]
# The sweep runs two trials at a time, with a checkpoint every few tens of milliseconds. kill -9 hits the sweep at a
# random moment, and every second time only after the first checkpoint. In the end results.csv (without times),
# metrics.jsonl and layers.csv must equal those of the undisturbed sweep byte for byte. At least half of the kills must
# hit a sweep with a checkpoint of an unfinished trial. --signal INT sends Ctrl-C instead, and expects exit status 130;
# the networks are then wide enough for matrix products that a signal must not interrupt.
set -euo pipefail
set -m  # needed because background processes otherwise ignore Ctrl-C until they install a handler
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
kills=100 bin=$root/build/release/bin signal=KILL
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$(cd "${2:?--bin expects a folder}" && pwd); shift 2 ;;
    --signal) signal=${2:?--signal expects KILL or INT}; shift 2 ;;
    --help | -h) sed -n '2,8s/^# //p' "$0"; exit ;;
    *) kills=$1; shift ;;
  esac
done
case "$signal" in
  KILL) killed=137 size=(--depths 2,3 --dim 16 --batch 8 --steps 200) ;;
  INT) killed=130 size=(--depths 1,2 --dim 192 --heads 3 --patch 8 --batch 4 --steps 20) ;;
  *) echo "error: --signal: expected KILL or INT, got '$signal'" >&2; exit 2 ;;
esac
[[ $kills =~ ^[1-9][0-9]*$ ]] || { echo "error: expected a number of kills, got '$kills'" >&2; exit 2; }
program=$bin/depth_stability
[ -x "$program" ] || { echo "error: $program does not exist; build it with ./test.sh" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seeds=0..$(((kills + 9) / 10 + 1))
# The command is an array, not a function. A function in the background would run in a shell, and the kill would hit
# that shell.
sweep=("$program" --gates pre,layerscale --seeds "$seeds" "${size[@]}" --drop-key 0.1 --ema-decay 0.9 --jobs 2 --no-progress)

begin=$(date +%s%N)
"${sweep[@]}" --out whole >/dev/null 2>&1
whole_ms=$((($(date +%s%N) - begin) / 1000000))
# The kills are spread over about the duration of the whole sweep, so that a part of the work is left at the end.
longest_ms=$((2 * whole_ms / kills + 40))
checkpoint() { [ -n "$(find killed/checkpoints -name '*.safetensors' ! -name '.*' 2>/dev/null | head -1)" ]; }
# Whether the sweep has installed its handler of Ctrl-C. A Ctrl-C before that moment ends the process by default.
listens() { (($((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null || echo 0) & 2)) != 0)); }
hit=0 done_early=0 stopped=0
for ((i = 0; i < kills; ++i)); do
  "${sweep[@]}" --out killed --resume --checkpoint-every 0.0005 >log 2>&1 &
  pid=$!
  # Wait until the sweep has begun, because an earlier kill tests nothing.
  for ((t = 0; t < 400; ++t)); do [ -e killed/run.json ] && break; sleep 0.01; done
  if [ "$signal" = INT ]; then
    for ((t = 0; t < 400; ++t)); do listens && break; sleep 0.01; done
  fi
  # Every second kill waits for a checkpoint, even if the machine is busy.
  if ((i % 2)); then
    for ((t = 0; t < 400; ++t)); do checkpoint && break; sleep 0.01; done
    sleep "0.0$((RANDOM % 30 + 10))"
  else
    sleep "$(awk -v r=$RANDOM -v m=$longest_ms 'BEGIN { printf "%.3f", 0.05 + r / 32768 * m / 1000 }')"
  fi
  kill -s "$signal" $pid 2>/dev/null || true
  ended=0
  wait $pid 2>/dev/null || ended=$?
  if [ $ended = $killed ]; then
    if checkpoint; then hit=$((hit + 1)); fi
    if [ "$signal" = INT ] && grep -q '^interrupted: ' log; then stopped=$((stopped + 1)); fi
  elif [ $ended = 0 ]; then
    done_early=$((done_early + 1))
  else
    cat log >&2
    echo "error: kill $((i + 1)): expected exit status $killed, got $ended" >&2
    exit 1
  fi
done
"${sweep[@]}" --out killed --resume >log 2>&1 || { cat log >&2; exit 1; }

timeless() { awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) keep[i] = $i != "seconds" && $i != "images_per_second" } { line = ""; for (i = 1; i <= NF; ++i) if (keep[i]) line = line "," $i; print line }' "$1"; }
status=0
for file in metrics.jsonl layers.csv; do cmp "whole/$file" "killed/$file" || status=1; done
cmp <(timeless whole/results.csv) <(timeless killed/results.csv) || status=1
damaged=$(grep -c '^damaged' log || true)
echo "$kills kills, $hit of them with a checkpoint of an unfinished trial, $done_early after the end; $(($(wc -l <whole/results.csv) - 1)) trials; damaged lines: $damaged"
if [ $status = 0 ]; then echo "results equal those of the undisturbed sweep"; else echo "error: results differ" >&2; fi
if [ "$signal" = INT ] && [ $((2 * stopped)) -lt "$kills" ]; then
  echo "error: only $stopped of $kills interrupts were handled by the sweep, expected at least half" >&2
  status=1
fi
if [ $((2 * hit)) -lt "$kills" ]; then echo "error: only $hit of $kills kills hit a trial with a checkpoint, expected at least half" >&2; status=1; fi
exit $status
