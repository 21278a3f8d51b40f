#!/usr/bin/env bash
# Fuzzes a reader of bytes from outside with libFuzzer, the address and the undefined-behaviour sanitizer.
# Usage: tools/fuzz.sh READER [SECONDS] [OPTIONS OF libFuzzer]      SECONDS: 600 by default
# READER is a name that `fuzz_readers` prints, such as png, safetensors or ledger. Needs clang 16 or newer with its
# sanitizers (Debian 12: clang-16 libclang-rt-16-dev libomp-16-dev). The corpus stays in build/fuzz/corpus/READER. An
# input that fails is written to build/fuzz/READER-*; put it into tests/fuzz/findings/READER, where every later test run
# reads it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n 3p "$0" >&2; exit 2; }
reader=$1 seconds=${2:-600}
shift $(($# < 2 ? 1 : 2))
# Older versions of clang lack std::source_location with GCC's library.
for version in 16 17 18 19; do
  if command -v "clang++-$version" >/dev/null; then compiler=clang++-$version; fi
done
[ -n "${compiler:-}" ] || { echo "error: clang 16 or newer is missing; install clang-16, libclang-rt-16-dev and libomp-16-dev" >&2; exit 1; }
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" -DPLUMB_BUILD_TESTS=ON >/dev/null
cmake --build --preset fuzz --target fuzz_reader fuzz_readers
build/fuzz/bin/fuzz_readers "$reader" --write-seeds "build/fuzz/corpus/$reader"
PLUMB_FUZZ_READER=$reader build/fuzz/bin/fuzz_reader -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 \
  -artifact_prefix="build/fuzz/$reader-" "$@" "build/fuzz/corpus/$reader"
