#!/usr/bin/env bash
# Installs Plumb, builds the project with a gate of its own against the installed package and runs it.
# Usage: install_test.sh BUILD_DIR GENERATOR COMPILER BUILD_TYPE
set -euo pipefail
build=$1 generator=$2 compiler=$3 type=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$build/tests/install
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$here/outside_gate" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$type" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/outside_gate" --list-gates | grep -q '^tanh_gate '
"$work/build/outside_gate" --gates tanh_gate,pre --depths 2 --steps 3 --batch 4 --dim 8 --out "$work/run" --no-progress
[ "$(grep -c '^tanh_gate,2,.*,ok,' "$work/run/results.csv")" = 1 ]
grep -q '^tanh_gate,.*,attn,' "$work/run/layers.csv"
lines=$(grep -cv '^ *$' "$here/../../examples/own_gate.cpp")
[ "$lines" -le 20 ] || { echo "the outside gate takes $lines lines, more than 20" >&2; exit 1; }
