#!/usr/bin/env bash
# Checks the cuda backend on a machine with a GPU and measures its speed. Needs a checkout, but no network.
# Usage: tools/gpu_check.sh [--build DIR] [--out DIR] [--peer FILE]
#   --build DIR   an existing release build with CUDA and tests; without it the script builds Plumb first
#   --out DIR     the folder for logs and results.tsv, which gets a line after each stage [build/gpu_check]
#   --peer FILE   also measure this PyTorch program, which prints the time of the same training step as a line of JSON
# Each stage has a time limit (nine minutes in total, without the build). After a failed or unavailable stage, the next
# stage runs. Ends with a table. The exit status is 1 if a stage failed. Does not change clocks or modes of the GPU.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build= out=$root/build/gpu_check peer=
while [ $# -gt 0 ]; do
  case "$1" in
    --build | --out | --peer) [ $# -gt 1 ] || { echo "error: $1 expects a value" >&2; exit 2; }
      declare "${1#--}=$2"; shift 2 ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
results=$out/results.tsv
printf 'stage\tresult\tseconds\tnote\n' >"$results"
export REQUIRE_GPU=1
status=0

record() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$results"; }
# stage NAME LIMIT COMMAND..: runs the command with a time limit in seconds, writes its output to NAME.log, and records
# the last line of the output as the note of the stage.
stage() {
  local name=$1 limit=${PLUMB_GPU_CHECK_LIMIT:-$2} log=$out/$1.log began=$SECONDS code=0 result
  shift 2
  if ! command -v "$1" >/dev/null; then
    if [[ $1 == "$build"/* ]]; then  # the command is a program of Plumb
      record "$name" failed 0 "no $1"
      status=1
    else
      record "$name" unavailable 0 "$1 is not installed"
    fi
    return
  fi
  timeout "$limit" "$@" >"$log" 2>&1 || code=$?
  case $code in
    0) result=passed ;;
    124) result="over ${limit} s" status=1 ;;
    *) result=failed status=1 ;;
  esac
  record "$name" "$result" $((SECONDS - began)) "$(grep -v '^ *$' "$log" | tail -1 | tr '\t' ' ' | cut -c1-160)"
}

stage environment 10 bash -c 'uname -sr; nvcc --version 2>/dev/null | sed -n 4p; nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader'
if [ -z "$build" ]; then
  build=$root/build/release
  stage configure 60 cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPLUMB_CUDA=ON -DPLUMB_BUILD_TESTS=ON
  stage build 1500 cmake --build "$build" --target ops_tests backends_tests cuda_tests parity bench_step depth_stability
fi
stage memory 20 "$build/tests/cuda_tests" "uploads*,copies*,memory*,host code*"
stage kernels 45 "$build/tests/backends_tests"
stage ops 45 "$build/tests/ops_tests"
stage training 50 "$build/tests/cuda_tests" "every*,CaiT*,talking heads*,a training step*,a block*,in bf16*,a step that*"
stage studies 40 "$build/tests/cuda_tests" "a study*,a training that*,bin/*,examples*,the gate kit*"
stage parity 20 "$build/bin/parity" "$root/tests/golden/cases"
# CUDA's checkers run tests that launch every kind of kernel once. Some machines do not permit these checkers.
stage memcheck 30 compute-sanitizer --tool memcheck --error-exitcode 1 "$build/tests/cuda_tests" "a training step*,talking heads*"
stage racecheck 40 compute-sanitizer --tool racecheck --error-exitcode 1 "$build/tests/cuda_tests" "a training step*,talking heads*"
stage initcheck 25 compute-sanitizer --tool initcheck --error-exitcode 1 "$build/tests/cuda_tests" "a training step*,talking heads*"
for dtype in fp32 bf16; do
  stage "step-$dtype" 20 "$build/bin/bench_step" --device cuda --dtype "$dtype" --gate layerscale --dropkey 0.1
  if [ -n "$peer" ]; then
    for mode in eager compile; do
      stage "peer-$dtype-$mode" 30 python3 "$peer" --device cuda --dtype "$dtype" --mode "$mode" --gate layerscale --dropkey 0.1
    done
  fi
done
stage profile 20 "$build/bin/depth_stability" --device cuda --gates layerscale --depths 12 --dim 192 --steps 8 --drop-key 0.1 --profile --overwrite --no-progress --out "$out/profile"

awk -F'\t' '{ printf "%-20s %-12s %8s  %s\n", $1, $2, $3, $4 }' "$results"
exit "$status"
