#!/usr/bin/env bash
# Checks the cuda backend on a machine with a GPU and measures its speed, from a bundle (gpu_bundle.sh) or a build.
# Usage: tools/gpu_check.sh [--build DIR] [--out DIR] [--stages LIST] [--seconds N] [--python PATH] [--dry-run] [--list]
#   --build DIR    a release build with CUDA and tests [the bundle of this script, or build/release]
#   --out DIR      the folder for logs and results.tsv, which gets a line after each stage [gpu_check; in a build,
#                  the build's gpu_check]
#   --stages LIST  comma-separated names of stages or groups: default (correctness, then speed), rest (the others),
#                  cpu (stages without a GPU), all [default]
#   --seconds N    the time for all stages; stages that do not fit are not started [570]
#   --python PATH  a Python with torch, for the peer [python3]
#   --dry-run      print the command line of each stage and check that its files exist; run nothing
#   --list         print the files of a build that the stages use
# A failed stage does not end the check. A stage that has ended before in the same --out is left out, so the same
# command continues; another --out repeats it. The end is a table and OUT.tar.gz with all logs. The exit status is 1 if
# a stage failed or did not fit. The script needs no network, and does not change clocks or modes of the GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
files=(bin/{bench_step,depth_stability,vit,passport,parity,replay}
  bin/example_{own_gate,highway_gate,watch_signals,gradient_signal} tests/{cuda,ops,backends}_tests)
build='' out='' stages=default seconds=570 python=python3 dry=0
while [ $# -gt 0 ]; do
  case "$1" in
    --build | --out | --stages | --seconds | --python) [ $# -gt 1 ] || { echo "error: $1 expects a value" >&2; exit 2; }
      declare "${1#--}=$2"; shift 2 ;;
    --dry-run) dry=1; shift ;;
    --list) printf '%s\n' "${files[@]}"; exit ;;
    *) sed -n '2,16p' "$0" >&2; exit 2 ;;
  esac
done
if [ -x "$here/bin/bench_step" ]; then  # this script is in a bundle
  build=${build:-$here} out=${out:-gpu_check} peer=$here/peer_torch.py data=$here libraries=$here/lib
else
  root=$(dirname "$here")
  build=${build:-$root/build/release} peer=$root/bench/peer_torch.py data=$root libraries=
fi
build=$(cd "$build" 2>/dev/null && pwd || echo "$build")
out=${out:-$build/gpu_check}
# The libraries of the compiler that built the bundle may need a newer glibc than the machine has. The machine's own
# are then new enough.
if [ -d "$here/lib/compiler" ] && LD_LIBRARY_PATH=$libraries:$here/lib/compiler "$build/bin/bench_step" --help \
  >/dev/null 2>&1; then libraries=$libraries:$here/lib/compiler; fi
PATH=$PATH:/usr/local/cuda/bin
cases=$data/tests/golden/cases names=$data/docs/pytorch_to_plumb.md
export REQUIRE_GPU=1 PLUMB_BINARY_DIR=$build CUBLASLT_LOG_LEVEL=1

# Prints the folder of the cuBLASLt that the programs open: of a toolkit, or of PyTorch's packages.
find_cublaslt() {
  local library folder packages
  library=$(grep -aom1 'libcublasLt\.so\.[0-9]*' "$build/bin/bench_step" 2>/dev/null) || library=libcublasLt.so.13
  packages=$(timeout -k 5 20 "$python" -c 'import importlib.util as u
print(*(p for m in ("nvidia", "torch") if (s := u.find_spec(m)) for p in s.submodule_search_locations))' 2>/dev/null)
  for folder in $(tr : ' ' <<<"${LD_LIBRARY_PATH:-}") /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib \
    /usr/lib/*-linux-gnu $(for p in $packages; do echo "$p"/*/lib "$p/lib"; done); do
    [ ! -e "$folder/$library" ] || { echo "$folder"; return 0; }
  done
  echo "not found ($library)"
  return 1
}
# Only Plumb's programs get these libraries. PyTorch has its own, and must not get older ones of the bundle.
if cublaslt=$(find_cublaslt); then libraries=${libraries:+$libraries:}$cublaslt; fi
libraries=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
has_torch=0
! timeout -k 5 20 "$python" -c 'import importlib.util as u; exit(not u.find_spec("torch"))' 2>/dev/null || has_torch=1

print_environment() {
  uname -sr
  ldd --version | sed -n 1p
  nvcc --version 2>/dev/null | sed -n 4p
  "$python" -c 'import importlib.metadata as m; print("torch", m.version("torch"))' 2>/dev/null
  echo "cuBLASLt: $cublaslt"
  nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader
}
start_programs() {
  local program
  for program in "$@"; do
    "$program" --help >/dev/null || { echo "does not start: $program"; return 1; }
  done
  echo "$# programs start"
}
export -f print_environment start_programs
export python cublaslt

# wanted NAME GROUPS: whether a stage was asked for. GROUPS: default, rest, cpu, or several with commas.
known=() names_only=0
wanted() {
  known+=("$1")
  [ "$names_only" = 0 ] || return 1
  local word
  for word in all "$1" ${2//,/ }; do
    [[ ",$stages," != *",$word,"* ]] || return 0
  done
  return 1
}
record() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$results"; }
status=0
# stage GROUPS NAME LIMIT COMMAND..: runs the command with a limit in seconds and with $libraries, writes its output
# to NAME.log, and records the last line of the output as the note of the stage.
stage() {
  local groups=$1 name=$2 limit=${PLUMB_GPU_CHECK_LIMIT:-$3} began=$SECONDS code=0 result missing='' word
  shift 3
  wanted "$name" "$groups" || return 0
  for word in "$@"; do
    case "$word" in
      "$build"/* | "$peer" | "$cases") case "$word" in "$out"/*) ;; *) [ -e "$word" ] || missing=$word ;; esac ;;
    esac
  done
  if [ "$dry" = 1 ]; then
    echo "$name (at most $limit s): $*"
    [ -z "$missing" ] || { echo "  missing: $missing"; status=1; }
    return 0
  fi
  if grep -q "^$name"$'\t\(passed\|failed\|over\)' "$results"; then
    grep -q "^$name"$'\tpassed' "$results" || status=1
    return 0
  fi
  if [ -n "$missing" ]; then
    record "$name" failed 0 "no $missing"
    status=1
  elif ! command -v "$1" >/dev/null; then
    record "$name" unavailable 0 "$1 is not installed"
  elif [ $((SECONDS + limit + 5)) -gt "$seconds" ]; then
    record "$name" "not started" 0 "may take $limit s; the same command continues"
    status=1
  else
    timeout -k 5 "$limit" ${libraries:+env LD_LIBRARY_PATH="$libraries"} "$@" >"$out/$name.log" 2>&1 || code=$?
    case $code in
      0) result=passed ;;
      124 | 137) result="over $limit s" status=1 ;;
      *) result=failed status=1 ;;
    esac
    record "$name" "$result" $((SECONDS - began)) \
      "$(grep -v '^ *$' "$out/$name.log" | tail -1 | tr '\t' ' ' | cut -c1-200)"
  fi
}
peer_stage() {  # GROUPS NAME LIMIT OPTIONS..
  local groups=$1 name=$2 limit=$3
  shift 3
  if [ "$has_torch" = 0 ] && [ "$dry" = 0 ]; then
    if wanted "$name" "$groups"; then record "$name" unavailable 0 "$python has no torch"; fi
  else
    libraries='' stage "$groups" "$name" "$limit" "$python" "$peer" --device cuda "$@"
  fi
}

# The stages. Correctness comes first, then the stages that tell most per second.
all_stages() {
  local tests=$build/tests step=$build/bin/bench_step vit=(--gate layerscale --dropkey 0.1) dtype mode tool size
  libraries='' stage default environment 15 bash -c print_environment
  stage default,cpu start 20 bash -c 'start_programs "$@"' _ "${files[@]/#/$build/}"
  stage cpu cpu-ops 200 env -u REQUIRE_GPU "$tests/ops_tests"
  stage cpu cpu-parity 100 "$build/bin/parity" "$cases"
  stage cpu cpu-step 60 "$step" --depth 2 --steps 3 --batch 8
  stage default memory 20 "$tests/cuda_tests" "uploads*,copies*,freed memory*,host access*,traffic*"
  stage default kernels 60 "$tests/backends_tests"
  stage default ops 60 "$tests/ops_tests"
  stage default training 60 "$tests/cuda_tests" "every*,CaiT*,talking heads*,a training step*,a block*,a step*,step()*,\
weights and averages*,labels and indices*"
  stage default parity 25 "$build/bin/parity" "$cases"
  for dtype in fp32 bf16; do
    stage default "step-$dtype" 20 "$step" --device cuda --dtype "$dtype" "${vit[@]}"
    peer_stage default "peer-$dtype-eager" 35 --dtype "$dtype" --mode eager "${vit[@]}"
    peer_stage default "peer-$dtype-compile" 90 --dtype "$dtype" --mode compile "${vit[@]}"
  done

  stage rest studies 60 "$tests/cuda_tests" "a study*,divergence*,a trial*,an interrupted*,bin/*,examples*,the gate kit*"
  # CUDA's checkers run tests that launch every kind of kernel once. cuBLASLt's kernels take long and may give false
  # alarms, so memcheck and racecheck look at Plumb's kernels only. initcheck must see all writes. Some machines do not
  # permit these checkers.
  for tool in memcheck racecheck initcheck; do
    local only=(--kernel-name kns=plumb)
    [ "$tool" != initcheck ] || only=()
    stage rest "$tool" 90 compute-sanitizer --tool "$tool" "${only[@]}" --error-exitcode 1 \
      "$tests/cuda_tests" "a training step*,talking heads*"
  done
  for size in "dim192-128 --batch 128" "dim192-1024 --batch 1024" \
    "dim64 --dim 64 --depth 48 --heads 2 --patch 8 --batch 64"; do
    local words
    read -ra words <<<"$size"
    for dtype in fp32 bf16; do
      stage rest "step-${words[0]}-$dtype" 40 "$step" --device cuda --dtype "$dtype" "${vit[@]}" "${words[@]:1}"
      for mode in eager compile graph; do
        peer_stage rest "peer-${words[0]}-$dtype-$mode" 120 --dtype "$dtype" --mode "$mode" "${vit[@]}" "${words[@]:1}"
      done
    done
  done
  for dtype in fp32 bf16; do
    peer_stage rest "peer-$dtype-graph" 120 --dtype "$dtype" --mode graph "${vit[@]}"
  done
  stage rest profile 60 "$build/bin/depth_stability" --device cuda --gates layerscale --depths 12 --dim 192 --steps 400 \
    --drop-key 0.1 --profile --overwrite --no-progress --out "$out/profile"
}

names_only=1
all_stages
names_only=0
for name in ${stages//,/ }; do
  case " default rest cpu all ${known[*]} " in
    *" $name "*) ;;
    *) echo "error: unknown stage '$name'; known: ${known[*]}" >&2; exit 2 ;;
  esac
done
if [ "$dry" = 1 ]; then
  all_stages
  echo "data and libraries: $names $(ls "$here"/lib/* 2>/dev/null | tr '\n' ' ')cuBLASLt: $cublaslt"
  [ -e "$names" ] || { echo "  missing: $names"; status=1; }
  exit "$status"
fi
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
results=$out/results.tsv
[ -s "$results" ] || printf 'stage\tresult\tseconds\tnote\n' >"$results"
# Results of one build on one machine.
identity=$(cat "${files[@]/#/$build/}" 2>/dev/null | cksum; nvidia-smi -L 2>/dev/null)
[ -e "$out/identity" ] || echo "$identity" >"$out/identity"
if [ "$identity" != "$(cat "$out/identity")" ]; then
  echo "error: $out has results of another build or another GPU; choose another --out" >&2
  exit 1
fi
all_stages
awk -F'\t' '{ printf "%-24s %-12s %8s  %s\n", $1, $2, $3, $4 }' "$results"
if tar -C "${out%/*}/" -czf "$out.tar.gz" "${out##*/}"; then
  echo "all logs: $out.tar.gz"
else
  echo "error: no archive of $out" >&2
  status=1
fi
exit "$status"
