#!/usr/bin/env bash
# Plants faults into a copy of the cuda backend, one at a time, and checks that the tests on the emulated device catch
# each fault.
# Usage: tools/cuda_faults.sh [PATTERN]      only faults whose names match the regular expression
# Prints the name of the test that caught each fault. The last line is "N of N caught". Run nothing else at the same
# time: a test that takes more than ten minutes counts as endless, and the fault of an endless test counts as caught.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD copy=$PWD/build/faults
pattern=${1:-}

# Prints one line per fault: name | file | perl substitution, which must change the file | tests, schedule and test case
# to try first.
faults() {
  cat <<'LIST'
pinned memory filled again too early|backends/cuda/memory.cpp|s/wait_for\(halves_\[current_\]\.emptied\);//|cuda lazy uploads of any size*
readback not waited for|backends/cuda/memory.cpp|s/wait_for\(place_\.filled\);//|cuda lazy a study on the device reports*
readback without an event|backends/cuda/memory.cpp|s/PLUMB_CUDA_CHECKED\(cudaEventRecord\(place_\.filled, stream\(\)\)\);//|cuda lazy a study on the device reports*
no event recorded for a half of pinned memory|backends/cuda/memory.cpp|s/PLUMB_CUDA_CHECKED\(cudaEventRecord\(halves_\[current_\]\.emptied, stream\(\)\)\);//|cuda lazy uploads of any size*
pinned memory used twice at one place|backends/cuda/memory.cpp|s/used_ = std::min\(half_bytes, \(used_ \+ part \+ 255\) \/ 256 \* 256\);//|cuda lazy uploads of any size*
upload cut off after the first part|backends/cuda/memory.cpp|s/host \+= part, device \+= part, bytes -= part;/bytes = 0;/|cuda eager uploads of any size*
copy of the wrong kind|backends/cuda/memory.cpp|s/cudaMemcpyHostToDevice/cudaMemcpyDeviceToDevice/|cuda eager uploads of any size*
copy within the device left out|backends/cuda/memory.cpp|s/if \(bytes > 0\) PLUMB_CUDA_CHECKED\(cudaMemcpyAsync\(to, from/if (bytes > 1u << 30) PLUMB_CUDA_CHECKED(cudaMemcpyAsync(to, from/|cuda eager copies happen*
heap gets memory that is freed at once|backends/cuda/memory.cpp|s/return static_cast<std::byte\*>\(p\);\n  \}\n  void give_back/cudaFree(p); return static_cast<std::byte*>(p);\n  }\n  void give_back/|cuda eager
wrong leading dimension|backends/cuda/products.cpp|s/static_cast<std::uint64_t>\(rows\),(\s*)columns\)/static_cast<std::uint64_t>(rows),$1columns + 1)/|backends eager
transposed operand|backends/cuda/products.cpp|s/p\.transpose_b \? CUBLAS_OP_T : CUBLAS_OP_N/p.transpose_b ? CUBLAS_OP_N : CUBLAS_OP_T/|backends eager
bias skipped|backends/cuda/products.cpp|s/p\.bias \? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT/CUBLASLT_EPILOGUE_DEFAULT/|backends eager
sum not added to|backends/cuda/products.cpp|s/p\.add_to_y \? 1 : 0/0/|backends eager
no workspace|backends/cuda/products.cpp|s/aligned_workspace_,\s*plan\.workspace, stream/nullptr, 0, stream/|cuda eager
plan of another product|backends/cuda/products.h|s/auto operator<=>\(const Product&\) const = default;/auto operator<=>(const Product& o) const { return M <=> o.M; } bool operator==(const Product& o) const { return M == o.M; }/|cuda eager
wrong batch stride|backends/cuda/linear.cu|s/walk\.inner_stride\[0\] \* M \* K/walk.inner_stride[0] * K/|backends eager
last rows of a weight gradient left out|backends/cuda/linear.cu|s/if \(rest > 0\)/if (rest < 0)/|backends eager
off by one at the end|backends/cuda/elementwise.cu|s/for \(; i < n; \+\+i\) y\[i\] = apply<op>\(x\[i\], parameter\)/for (; i + 1 < n; ++i) y[i] = apply<op>(x[i], parameter)/|backends eager
one element too many|backends/cuda/elementwise.cu|s/for \(; i < n; \+\+i\) y\[i\] = apply<op>\(x\[i\], parameter\)/for (; i <= n; ++i) y[i] = apply<op>(x[i], parameter)/|backends eager
grid a block short|backends/cuda/launch.h|s/\(n \+ block_threads - 1\) \/ block_threads/(n < block_threads ? 1 : n \/ block_threads)/|backends eager
barrier deleted|backends/cuda/warp.cuh|s/memory\[threadIdx\.x\] = x;\n  __syncthreads\(\);/memory[threadIdx.x] = x;/|backends eager
barrier in a branch|backends/cuda/warp.cuh|s/memory\[threadIdx\.x\] \+= memory\[threadIdx\.x \+ half\];\n    __syncthreads\(\);/{ memory[threadIdx.x] += memory[threadIdx.x + half]; __syncthreads(); }/|backends eager
a row too many in a part|backends/cuda/rows.cuh|s/row < min\(rows, first \+ rows_of_block\)/row <= min(rows - 1, first + rows_of_block)/|backends eager
lanes leave columns out|backends/cuda/reduce.cu|s/i < count; i \+= 32/i < count; i += 33/|backends eager
parts of warps added too early|backends/cuda/norm.cu|s/if \(!partial\) return;\n  __syncthreads\(\);/if (!partial) return;/|backends eager
last warp left out of a sum|backends/cuda/norm.cu|s/w < warps; \+\+w/w + 1 < warps; ++w/|backends eager
head's rows read before they are there|backends/cuda/attention.cu|s/__syncthreads\(\);\n  for \(std::int64_t index/for (std::int64_t index/|backends eager
gate's gradient without that of the bias|backends/cuda/linear.cu|s/f\.b \? bias \* f\.b\[n\] : T\{0\}/T{0}/|backends eager
operands said to be of the wrong type|backends/cuda/products.h|s/bf16_operands \? DType::bf16 : dtype/dtype/|backends eager
warp barrier deleted|backends/cuda/attention_masks.cuh|s/\/= sum;\n  __syncwarp\(\);/\/= sum;/|backends eager
shared memory a row short|backends/cuda/attention_masks.cuh|s/static_cast<std::size_t>\(warps \* bytes\)/static_cast<std::size_t>((warps - 1) * bytes)/|backends eager
shuffle for a barrier|backends/cuda/attention_masks.cuh|s/\/= sum;\n  __syncwarp\(\);/\/= sum;\n  __shfl_xor_sync(~0u, 0, 1);/|backends races cpu attention on packed heads in place
stale step|backends/cuda/attention_masks.cuh|s/c\.step,/0,/|backends eager
mask of another sample|backends/cuda/attention_masks.cuh|s/call\.first_sample \+ b\)/call.first_sample)/|backends eager
output left as it was|backends/cuda/norm.cu|s/rstd\[row\] = s;//|backends eager
label out of range not seen|backends/cuda/softmax.cu|s/losses\[row\] = loss \+ targets\.check\(row, n\)/losses[row] = loss/|cuda eager labels and indices out of range*
index out of range read|backends/cuda/movement.cu|s/0 <= row && row < rows/true/|cuda eager labels and indices out of range*
a training that goes on although it is not finite|backends/cuda/optimizer.cu|s/if \(state && state->goes_on == 0\) return;//g|cuda eager a step that is not finite*
state of the step before forgotten|backends/cuda/optimizer.cu|s/max_norm, state_of\(before\)/max_norm, state_of(Array())/|cuda eager a step that is not finite*
sum written over an earlier one|backends/cuda/warp.cuh|s/__syncthreads\(\);[^\n]*\n(\s*memory\[threadIdx\.x\] = x;)/$1/|backends eager
second launch of a long table left out|backends/cuda/optimizer.cu|s/if \(table\.count == squares_rows\) flush\(\);/if (table.count == squares_rows) continue;/|cuda eager
tensor found a block late|backends/cuda/optimizer.cu|s/rows\[middle\]\.first_block <= block/rows[middle].first_block < block/|backends eager
draws of the wrong elements|backends/cuda/dropout.cu|s/first \/ 8 \+ static_cast/first \/ 8 + 1 + static_cast/|backends eager
constant row given a gradient|backends/cuda/attention_softmax.cu|s/attends \? y\[j\]/true ? y[j]/|backends eager
mask of the scores left out|backends/cuda/attention_softmax.cu|s/if \(draw_masks\(call, query\.b, query\.h, query\.n, row\)\)/draw_masks(call, query.b, query.h, query.n, row);/|backends eager
LIST
}

# Before the first fault is planted, this loop checks that every substitution changes its file.
while IFS='|' read -r name file change first; do
  if perl -0pe "$change" "$file" | cmp -s - "$file"; then echo "error: fault '$name': the substitution matches nothing in $file; update it in the list" >&2; exit 1; fi
done < <(faults)

rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | xargs -0 cp --parents -t "$copy"
cd "$copy"
export PLUMB_FILL_FRESH_BUFFERS=1 REQUIRE_GPU=1
# Builds and runs tests under a schedule or the race checker: tests TESTS eager|lazy|races [CASE]. If the build fails,
# the status is 125.
tests() {
  local preset=emulated
  [ "$2" != races ] || preset=emulated-races
  if [ ! -e build/$preset/CMakeCache.txt ]; then cmake --preset $preset -DPLUMB_BUILD_TESTS=ON >/dev/null; fi
  cmake --build build/$preset --target "${1}_tests" || return 125
  PLUMB_EMULATED_SCHEDULE=$2 timeout 600 "build/$preset/tests/${1}_tests" --abort ${3:+"$3"}
}

# Prints the first test that fails, and the schedule of this test. If all tests pass, prints nothing. Runs the tests of
# the argument first, then the tests of the list below in this order.
caught_by() {  # optional argument: the tests to run first, 'TESTS SCHEDULE [CASE]'
  local schedule name status only
  while read -r name schedule only; do
    status=0
    tests "$name" "$schedule" "$only" >log 2>&1 </dev/null || status=$?
    if [ $status != 0 ]; then
      if [ $status = 125 ]; then echo "the compiler"; return; fi
      [ $status != 124 ] || printf 'endless: '
      echo "$name tests, $schedule: $({ grep -m1 'CUDA emulator:\|SUMMARY: ThreadSanitizer' log || grep -m1 -A1 '^-----*$' log | tail -1 || echo "status $status"; } | cut -c1-90)"
      return
    fi
  done < <([ $# = 0 ] || echo "$1"; printf '%s\n' 'backends eager' 'ops eager' 'cuda eager' 'backends lazy' 'ops lazy' 'cuda lazy')
}

# Without a fault, all tests must pass. Each test in the list of faults must exist and pass.
by=$(caught_by)
[ -z "$by" ] || { echo "error: a test fails without any fault: $by; fix it first" >&2; exit 1; }
while read -r name schedule only; do
  tests "$name" "$schedule" "$only" >log 2>&1 </dev/null && grep -q '^All tests passed' log || { echo "error: the test '$name $schedule $only' of the list is missing or fails; correct the list" >&2; exit 1; }
done < <(faults | cut -d'|' -f4 | grep ' .* ' | sort -u)
planted=0 caught=0
while IFS='|' read -r name file change first; do
  [[ $name =~ $pattern ]] || continue
  planted=$((planted + 1))
  perl -0pi -e "$change" "$file"
  by=$(caught_by "$first")
  cp "$root/$file" "$file"
  if [ -n "$by" ]; then caught=$((caught + 1)); fi
  printf '%-50s %s\n' "$name" "${by:-NOT CAUGHT}"
done < <(faults)
echo "$caught of $planted caught"
[ "$caught" = "$planted" ]
