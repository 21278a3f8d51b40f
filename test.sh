#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
# Usage: ./test.sh [release|asan|tsan]      asan: address and undefined-behaviour sanitizers; tsan: thread sanitizer, threaded parts
# Ends with a line of its own: N passed, N failed, N skipped
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}
case "$preset" in release | asan | tsan) ;; *) sed -n 2,4p "$0" >&2; exit 2 ;; esac

tools/install.sh test
cmake --preset "$preset" -DPLUMB_BUILD_TESTS=ON
targets=()
[ "$preset" = tsan ] && targets=(--target backends_tests experiments_tests)
cmake --build --preset "$preset" "${targets[@]}"

report=build/$preset/tests.xml
rm -f "$report"
status=0
ctest --preset "$preset" --output-junit "$PWD/$report" || status=$?
[ -s "$report" ] || { echo "error: the tests did not run" >&2; exit 1; }
count() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -1; }
total=$(count tests) failed=$(count failures) skipped=$(count skipped)
if [ "$skipped" -gt 0 ]; then
  echo "skipped:"
  grep -h -o 'SKIPPED: [^&<]*' "$report" | sort | uniq -c || true
fi
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
exit "$status"
