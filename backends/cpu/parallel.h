// Loops over blocks of work on several threads.
//
// The partition into blocks depends on the size of the work alone, never on the number of threads. So a kernel whose
// blocks do not share results gives the same bits on any number of threads; one that sums over blocks keeps a partial
// sum for each and adds them in order.
//
// Denormals: the kernels run with the processor's default mode, in which they are kept, because flushing them is a
// setting of each thread and would make results depend on who computes. Kernels take care not to make needless ones
// instead (attention: masked keys).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/thread_pool.h"

namespace plumb::cpu {

// Calls body(context, i) once for each i in [0, blocks), on all threads where `parallel`; on the calling one alone
// within another loop, and while another thread runs one. The first exception that a body throws leaves here, after all
// threads have stopped.
void run_blocks(std::int64_t blocks, bool parallel, void* context, BlockBody body);

// Calls f(begin, end) for the blocks [0, grain), [grain, 2 grain), ... of [0, n). Fewer than `worth` blocks run on the
// calling thread: starting the others costs about a microsecond, waking them some tens.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f, std::int64_t worth = 2) {
  struct Context {
    std::int64_t n, grain;
    std::remove_reference_t<F>& f;
  } context{n, grain, f};
  const std::int64_t blocks = (n + grain - 1) / grain;
  run_blocks(blocks, blocks >= worth, &context, [](void* p, std::int64_t block) {
    auto& c = *static_cast<Context*>(p);
    c.f(block * c.grain, std::min(c.n, (block + 1) * c.grain));
  });
}

// Passes over memory: about 16 KiB of f32 a block, in whole rows of `width` elements.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t width, F&& f) {
  parallel_for(rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, width)), f, 4);
}
template <class F>
void parallel_elements(std::int64_t n, F&& f) {
  parallel_rows(n, 1, f);
}

// Rows a block where each block keeps partial sums: from 512 rows on a multiple of eight blocks, so that 2, 4 or 8
// threads have equal shares, of at least 64 rows, at most 256 blocks; of the numbers that are possible the one that
// leaves the last block least short. Fewer rows make up to eight blocks. One rule for all such kernels, so that an op
// has the same bits alone and as a part of a fused one.
std::int64_t partial_rows(std::int64_t rows);

// Products of fewer operations than this (about 5 us on one core) stay on the calling thread: others are not worth
// waking.
constexpr std::int64_t small_product = 500'000;

// Into how many parts a sum or a product is cut where the bits of its result depend on that, whatever the number of
// threads.
constexpr std::int64_t fixed_parts = 8;

// While one lives, oneDNN uses one thread when called from this one: loops are ours, and OpenMP's threads, which wait
// by spinning, are never started. A part of OneDnnCall (onednn_primitives.h), under which every call of oneDNN is made.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

}  // namespace plumb::cpu
