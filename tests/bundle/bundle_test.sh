#!/usr/bin/env bash
# Builds the bundle of tools/gpu_bundle.sh, and runs the stages of its check that need no GPU in a root that has a shell
# and glibc but none of Plumb's libraries. Without the right to change the root: in an empty environment.
# Usage: bundle_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1 build=$2
grep -q '^PLUMB_CUDA_BUILT:.*=nvcc' "$build/CMakeCache.txt" ||
  { echo "SKIPPED: no bundle, because the build has no CUDA backend"; exit; }
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

"$source/tools/gpu_bundle.sh" "$work/bundle.tar.xz" --build "$build"
megabytes=$(du -m "$work/bundle.tar.xz" | cut -f1)
[ "$megabytes" -le 45 ] || { echo "error: the bundle has $megabytes MB, more than 45"; exit 1; }

# A root of the tools that the check calls, with their libraries and without any other.
root=$work/root
mkdir -p "$root"/{dev,tmp,usr/bin,usr/lib,usr/lib64}
ln -s usr/bin usr/lib usr/lib64 "$root/"
: >"$root/dev/null"
for tool in bash sh env timeout tar gzip awk sed grep tr cut tail mkdir dirname date uname cat ls rm; do
  path=$(command -v "$tool")
  cp -L "$path" "$root/usr/bin/$tool"
  for library in $(ldd "$path" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
done
xz -dc "$work/bundle.tar.xz" | tar -C "$root" -xf -
cp -L "$(ldd "$build/bin/bench_step" | grep -o '/[^ ]*/libm\.so[^ ]*')" "$root/usr/lib/"  # belongs to glibc
if chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot) && "$chroot" / true 2>/dev/null; then
  in_root() { env -i PATH=/usr/bin HOME=/ "$chroot" "$root" "$@"; }
  bundle=/plumb-gpu
else
  echo "no right to change the root; the bundle runs in an empty environment"
  in_root() { env -i PATH=/usr/bin:/bin HOME=/ "$@"; }
  bundle=$root/plumb-gpu
fi
for library in libdnnl libfmt libhwy libstdc++; do
  ! compgen -G "$root/usr/lib*/**/$library*" >/dev/null || { echo "error: the root has $library"; exit 1; }
done

# The dry run names each file and finds it; the stages pass; without a GPU, the default stages say what is missing.
in_root /usr/bin/bash "$bundle/gpu_check.sh" --dry-run --stages all >"$work/dry"
! grep missing: "$work/dry" || exit 1
in_root /usr/bin/bash "$bundle/gpu_check.sh" --stages cpu --out "$bundle/checked"
[ -s "$root/plumb-gpu/checked.tar.gz" ] || { echo "error: no archive of the results"; exit 1; }
[ ! -e /dev/nvidiactl ] || exit 0
! in_root /usr/bin/bash "$bundle/gpu_check.sh" --stages memory --out "$bundle/without" ||
  { echo "error: passed without a GPU"; exit 1; }
grep -q 'no NVIDIA driver' "$root/plumb-gpu/without/memory.log" || { cat "$root/plumb-gpu/without/memory.log"; exit 1; }
