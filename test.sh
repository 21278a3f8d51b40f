#!/usr/bin/env bash
# Installs missing packages, builds everything and runs all tests. Tests of the CUDA backend use an emulated device.
# If nvcc is available, release also compiles the CUDA backend for real devices. asan leaves out the programs, long
# trainings and sweeps, because shorter tests run most of that code. The last line is: N passed, N failed, N skipped
# Usage: ./test.sh [release|asan|tsan]      asan: address and undefined-behaviour sanitizers; tsan: thread sanitizer
#                                           (only the threaded parts and the CUDA kernels)
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}
case "$preset" in
  release)
    emulated=(emulated emulated-perturbed) schedules=(emulated emulated-lazy emulated-perturbed)
    programs=(backends_tests cuda_tests cuda_emulator_tests ops_tests)
    ;;
  asan) preset=emulated-asan emulated=() schedules=() programs=() ;;
  tsan) emulated=(emulated-races) schedules=(emulated-races) programs=(backends_tests cuda_emulator_tests) ;;
  *) sed -n 2,6p "$0" >&2; exit 2 ;;
esac

status=0 reports=()
# build PRESET [TARGET...]: builds a preset, or the given targets of the preset.
build() {
  cmake --preset "$1" -DPLUMB_BUILD_TESTS=ON
  cmake --build --preset "$1" ${2:+--target "${@:2}"}
}
run() { # arguments: TEST_PRESET BUILD_PRESET
  local report=$PWD/build/$2/$1.xml
  rm -f "$report"
  ctest --preset "$1" --output-junit "$report" || status=$?
  [ -s "$report" ] || { echo "error: the tests did not run" >&2; exit 1; }
  reports+=("$report")
}

tools/install.sh test
if [ "$preset" = tsan ]; then build tsan backends_tests lab_tests threads_tests vision_tests; else build "$preset"; fi
run "$preset" "$preset"
if [ "$preset" = release ]; then
  run amx release  # products in bf16 by AMX, on emulated registers
  tools/cuda_resources.sh || status=$?
fi
for emulator in "${emulated[@]}"; do
  if [ "$emulator" = emulated-perturbed ]; then
    build "$emulator" backends_tests cuda_tests ops_tests
  else
    build "$emulator" "${programs[@]}"
  fi
done
for schedule in "${schedules[@]}"; do run "$schedule" "${schedule%-lazy}"; done

count() { # argument: ATTRIBUTE; prints the sum of this attribute over the reports
  local sum=0 report
  for report in "${reports[@]}"; do sum=$((sum + $(sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -1))); done
  echo "$sum"
}
total=$(count tests) failed=$(count failures) skipped=$(count skipped)
if [ "$skipped" -gt 0 ]; then
  echo "skipped:"
  grep -h -o 'SKIPPED: [^&<]*' "${reports[@]}" | sort | uniq -c || true
fi
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
exit "$status"
