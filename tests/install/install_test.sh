#!/usr/bin/env bash
# Installs Plumb, then builds and runs a project with a custom gate that uses the installed package.
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
# The installed examples are a separate project. All examples must be there. The test builds and runs the smallest one.
examples=$work/prefix/share/plumb/examples
for source in "$here"/../../examples/*.cpp; do cmp "$source" "$examples/${source##*/}"; done
cmake -S "$examples" -B "$work/examples" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$type" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/examples" --target autograd
"$work/examples/autograd" >/dev/null
# Each program in programs.h must have a row in the docs, with its function and its name.
functions=$(sed -n 's|^int \([a-z_]*\)(int argc, .*|\1|p' "$work/prefix/include/plumb/internal/experiments/programs.h")
[ "$(wc -w <<<"$functions")" -ge 18 ] || { echo "programs.h names too few functions: $functions" >&2; exit 1; }
for function in $functions; do
  grep -q "^| \`lab::$function\` | \`$function\` |" "$work/prefix/share/doc/plumb/docs/ablations/README.md" || { echo "docs/ablations/README.md does not name lab::$function" >&2; exit 1; }
done
# If a dependency is missing, find_package must name it. The headers of the package must not include a file of the user.
refused() {  # arguments: TEXT_OF_THE_MESSAGE ARGUMENTS_OF_FIND_PACKAGE [OPTIONS_OF_CMAKE...]
  local text=$1 arguments=$2; shift 2
  mkdir -p "$work/refused"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\nfind_package(plumb %s REQUIRED)\n' "$arguments" >"$work/refused/CMakeLists.txt"
  rm -rf "$work/refused/build"
  if cmake -S "$work/refused" -B "$work/refused/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" "$@" >"$work/refused/log" 2>&1; then
    echo "find_package(plumb $arguments) $* was not refused" >&2; exit 1
  fi
  tr -s '\n ' ' ' <"$work/refused/log" | grep -q -F "$text" || { cat "$work/refused/log"; exit 1; }
}
refused 'plumb has no components, got cuda' 'COMPONENTS cuda'
refused 'version: 0.1.0' 0.2
refused 'plumb was built with OneDnn: libdnnl-dev' 0.1 -DCMAKE_DISABLE_FIND_PACKAGE_OneDnn=ON
[ -s "$work/prefix/share/doc/plumb/LICENSE" ] && [ -s "$work/prefix/share/doc/plumb/docs/gates/README.md" ]

lines=$(grep -cv '^ *$' "$here/../../examples/own_gate.cpp")
[ "$lines" -le 20 ] || { echo "examples/own_gate.cpp has $lines lines, more than 20" >&2; exit 1; }
