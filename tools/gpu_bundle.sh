#!/usr/bin/env bash
# Packs everything that a check of the cuda backend needs on a machine with a GPU and without this repository's
# libraries: programs, tests, shared libraries, test data, tools/gpu_check.sh and PyTorch's peer.
# Usage: tools/gpu_bundle.sh OUT.tar.xz [--build DIR]     DIR: a release build with CUDA and tests [build/release]
# There: tar -xf OUT.tar.xz && plumb-gpu/gpu_check.sh. The machine needs glibc 2.34, NVIDIA's driver, and cuBLASLt from
# a toolkit or from PyTorch. If its glibc is older than that of the bundle's libstdc++, the check uses the machine's
# libstdc++, which must then be of GCC 12 or later.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out= build=$root/build/release
while [ $# -gt 0 ]; do
  case "$1" in
    --build) [ $# -gt 1 ] || { echo "error: --build expects a folder" >&2; exit 2; }; build=$2; shift 2 ;;
    *.tar.xz) out=$1; shift ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
  esac
done
[ -n "$out" ] || { sed -n '2,8p' "$0" >&2; exit 2; }
grep -q '^PLUMB_CUDA_BUILT:.*=nvcc' "$build/CMakeCache.txt" 2>/dev/null || {
  echo "error: $build has no CUDA backend; install nvcc (CUDA 12 or later), and build it with tests: cmake" \
    "--preset release -DPLUMB_CUDA=ON -DPLUMB_BUILD_TESTS=ON && cmake --build --preset release" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/plumb-gpu
mkdir -p "$bundle"/{bin,tests,lib/compiler,docs}
for file in $("$root/tools/gpu_check.sh" --list); do strip -o "$bundle/$file" "$build/$file"; done
# The libraries of the programs and of their libraries, but not those of glibc, which must match the machine's loader.
ldd "$bundle"/bin/* "$bundle"/tests/* >"$work/libraries"
! grep 'not found' "$work/libraries" >&2 || { echo "error: the programs need libraries that are missing" >&2; exit 1; }
awk '$2 == "=>" && $3 ~ /^\// { print $3 }' "$work/libraries" | sort -u |
  grep -vE '/(libc|libm|libmvec|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' | while read -r library; do
  case "$library" in
    */libstdc++.so* | */libgcc_s.so*) cp -L "$library" "$bundle/lib/compiler/" ;;
    *) cp -L "$library" "$bundle/lib/" ;;
  esac
done
newest_glibc() { objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1; }
glibc=$(newest_glibc "$bundle"/bin/* "$bundle"/tests/* "$bundle"/lib/*.so*)
if [ "$(printf '2.34\n%s\n' "$glibc" | sort -V | tail -1)" != 2.34 ]; then
  echo "error: the programs need glibc $glibc, newer than 2.34; build them on an older system" >&2
  exit 1
fi
strip --strip-unneeded "$bundle"/lib/*.so* "$bundle"/lib/compiler/*
mkdir -p "$bundle/tests/golden"
cp -r "$root/tests/golden/cases" "$bundle/tests/golden/cases"
cp "$root/docs/pytorch_to_plumb.md" "$bundle/docs/"
cp "$root/bench/peer_torch.py" "$root/tools/gpu_check.sh" "$bundle/"
if grep -lF -e "$root" -e "$(cd "$build" && pwd)" -r "$bundle" >"$work/with-paths"; then
  echo "error: these files contain a path of this machine, $root or $build: $(tr '\n' ' ' <"$work/with-paths")" >&2
  exit 1
fi
tar -C "$work" -cf - plumb-gpu | xz --lzma2=preset=1,dict=192MiB >"$out"
echo "$out: $(du -m "$out" | cut -f1) MB, for glibc $glibc; the libstdc++ in it, for glibc" \
  "$(newest_glibc "$bundle"/lib/compiler/*)"
