#!/usr/bin/env bash
# Interrupts a study in the middle of its only trial, resumes it, and compares it with an undisturbed study.
# Usage: tests/examples/resumes_exactly.sh PROGRAM OPTION...      OPTION: the options of a study, without --out
# results.csv (without times), metrics.jsonl and layers.csv must be equal byte for byte. The resumed trial continues
# from its checkpoint, so any state that the checkpoint does not hold makes these files differ.
set -euo pipefail
set -m  # needed because background processes otherwise ignore Ctrl-C until they install a handler
export LC_ALL=C
[ $# -gt 1 ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
study=("$@" --no-progress)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { # argument: MESSAGE; shows the output of the last call of the program first
  cat log >&2
  echo "error: $1" >&2
  exit 1
}
checkpoint() { [ -n "$(find interrupted/checkpoints -name '*.safetensors' ! -name '.*' 2>/dev/null)" ]; }

"${study[@]}" --out whole >log 2>&1 || fail "the undisturbed study failed"
# On a busy machine, the trial may end before the interrupt. Then the loop tries again.
for _ in 1 2 3 4 5; do
  rm -rf interrupted
  "${study[@]}" --out interrupted --checkpoint-every 0.00001 >log 2>&1 &
  pid=$!
  until checkpoint || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
  kill -INT $pid 2>/dev/null || true
  ended=0
  wait $pid || ended=$?
  [ $ended = 0 ] || break
done
[ $ended = 130 ] || fail "expected exit status 130 after an interrupt, got $ended; give the trial more --steps"
grep -q '^interrupted: 0 of 1 ' log || fail "expected an interrupted study of one trial"
checkpoint || fail "the interrupt left no checkpoint"
"${study[@]}" --out interrupted --resume >log 2>&1 || fail "the resumed study failed"
if grep 'from the beginning' log >&2; then fail "the resumed trial did not continue from its checkpoint"; fi

timeless() {  # argument: FILE.csv; prints the file without the columns of times
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) keep[i] = $i != "seconds" && $i != "images_per_second" }
           { line = ""; for (i = 1; i <= NF; ++i) if (keep[i]) line = line "," $i; print line }' "$1"
}
cmp <(timeless whole/results.csv) <(timeless interrupted/results.csv) || fail "results.csv of the resumed study differs"
for file in metrics.jsonl layers.csv; do
  cmp "whole/$file" "interrupted/$file" || fail "$file of the resumed study differs"
done
echo "the resumed trial equals the undisturbed trial"
