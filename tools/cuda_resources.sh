#!/usr/bin/env bash
# Compiles the kernels of the cuda backend for compute capability 9.0, with warnings and register spills as errors.
# Compares the resources of each kernel with backends/cuda/resources.csv: registers, bytes of stack, bytes of static
# shared memory, and occupancy. The occupancy is the share of a multiprocessor's threads that blocks of 256 threads can
# fill. The occupancy does not count dynamic shared memory, which norms and attention use.
# Usage: tools/cuda_resources.sh [--update]      --update: write the results of this nvcc to the table
# Without nvcc ($CUDACXX or on the PATH), the script prints a notice and succeeds. If the table has no rows for the
# version of nvcc, the script only prints the results.
set -euo pipefail
cd "$(dirname "$0")/.."
table=backends/cuda/resources.csv
nvcc=$(command -v "${CUDACXX:-nvcc}" || command -v /usr/local/cuda/bin/nvcc || true)
if [ -z "$nvcc" ]; then
  echo "nvcc not found (\$CUDACXX or on the PATH): skipped compiling the CUDA kernels for a device and comparing their registers"
  exit 0
fi
version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '#include <vector>' >"$work/empty.cu"
if [ "${version%%.*}" -lt 12 ] || ! "$nvcc" -std=c++20 -c -o "$work/empty.o" "$work/empty.cu" >/dev/null 2>&1; then
  echo "$nvcc $version is older than 12 or does not support the installed C++ compiler: skipped compiling the CUDA kernels for a device"
  exit 0
fi

compile() {
  "$nvcc" -std=c++20 -O3 -DNDEBUG --expt-relaxed-constexpr -DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1 -gencode arch=compute_90,code=sm_90 -I. \
    -Werror all-warnings -Xptxas -v,--warn-on-spills,-Werror -cubin -o "$work/$(basename "$1").cubin" "$1" >"$work/$(basename "$1").log" 2>&1 ||
    { echo "error: $1" >&2; grep -v '^ptxas info' "$work/$(basename "$1").log" >&2; return 1; }
}
export -f compile
export nvcc work
printf '%s\n' backends/cuda/*.cu | xargs -P "$(nproc)" -I{} bash -c 'compile "$1"' _ {}

# This loop prints one line per kernel: the name without namespaces and parameters, then the resources.
for log in "$work"/*.cu.log; do
  sed -n "s/^ptxas info *: Compiling entry function '\([^']*\)'.*/kernel \1/p
          s/^ *\([0-9]*\) bytes stack frame.*/stack \1/p
          s/^ptxas info *: Used \([0-9]*\) registers.*/registers &/p" "$log" |
    c++filt |
    awk -v file="$(basename "$log" .cu.log)" '
      /^kernel / { sub(/^kernel (void )?/, ""); name = $0; stack = 0 }
      /^stack / { stack = $2 }
      /^registers / {
        match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
        shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
        gsub(/plumb::(cuda::)?|\(anonymous namespace\)::/, "", name)
        depth = 0; end = length(name)  # the parameters begin at the bracket that matches the last closing bracket
        for (i = length(name); i > 0; --i) {
          c = substr(name, i, 1)
          if (c == ")") ++depth
          if (c == "(" && --depth == 0) { end = i - 1; break }
        }
        print file ": " substr(name, 1, end) ";" registers ";" stack ";" shared
      }'
done | LC_ALL=C sort >"$work/now"

g++ -std=c++20 -isystem "$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include" tools/cuda_occupancy.cpp -o "$work/occupancy" 2>"$work/occupancy.log" ||
  { cat "$work/occupancy.log" >&2; exit 1; }
"$work/occupancy" <"$work/now" | sed "s/^/$version;/" >"$work/rows"

if [ "${1:-}" = --update ]; then
  { echo "nvcc;kernel;registers;stack;shared;occupancy"
    { grep -v -s -e '^nvcc;' -e "^$version;" "$table" || true; cat "$work/rows"; } | LC_ALL=C sort; } >"$work/table"
  mv "$work/table" "$table"
fi
count=$(wc -l <"$work/rows")
most=$(cut -d';' -f3 "$work/rows" | sort -n | tail -1)
if ! grep -q "^$version;" "$table"; then
  cat "$work/rows"
  echo "nvcc $version: $count kernels, at most $most registers, no spills; $table has no rows for this version; add them: tools/cuda_resources.sh --update"
  exit 0
fi
grep "^$version;" "$table" >"$work/then"
if ! diff "$work/then" "$work/rows" >"$work/differences"; then
  cat "$work/differences"
  echo "error: the resources of kernels differ from $table (< table, > now). If this is intended, run tools/cuda_resources.sh --update" >&2
  exit 1
fi
echo "nvcc $version: $count kernels, at most $most registers, no spills, equal to $table"
