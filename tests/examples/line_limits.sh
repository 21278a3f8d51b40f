#!/usr/bin/env bash
# Checks that example programs stay short: a call site that needs more lines is a reason to improve the library.
# Usage: tests/examples/line_limits.sh FILE LIMIT [FILE LIMIT]...      LIMIT: the largest allowed number of lines
set -euo pipefail
[ $# -gt 0 ] && [ $(($# % 2)) = 0 ] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
status=0
while [ $# -gt 0 ]; do
  [ -f "$1" ] || { echo "error: $1 does not exist; correct the name in examples/CMakeLists.txt" >&2; exit 1; }
  lines=$(wc -l <"$1")
  if [ "$lines" -gt "$2" ]; then
    echo "error: $1 has $lines lines, more than $2; shorten the program, or the calls that it needs" >&2
    status=1
  else
    echo "$1: $lines of $2 lines"
  fi
  shift 2
done
exit "$status"
