// Loops over blocks of work on several threads.
//
// The partition into blocks depends only on the size of the work, never on the number of threads. Therefore a kernel
// whose blocks do not share results gives the same bits on any number of threads. A kernel that sums over blocks keeps
// a partial sum for each block and adds the partial sums in order.
//
// Denormals: the kernels run in the processor's default mode, which keeps denormals. Flushing denormals to zero is a
// setting of each thread, so results would depend on the thread that computes. Instead, kernels avoid producing
// unnecessary denormals (as attention does for masked keys).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/thread_pool.h"

namespace plumb::cpu {

// Calls body(context, i) once for each i in [0, blocks), on all threads if `parallel`. If the call is made within
// another loop, or while another thread runs a loop, the loop runs on the calling thread only. If a body throws, the
// first exception is rethrown after all threads have stopped.
void run_blocks(std::int64_t blocks, bool parallel, void* context, BlockBody body);

// Calls f(begin, end) for the blocks [0, grain), [grain, 2 grain), ... of [0, n). Fewer than `worth` blocks run on the
// calling thread, because starting the other threads costs about a microsecond, and waking sleeping threads costs some
// tens of microseconds.
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

// Run parallel loops for passes over memory. A block has about 16 KiB of f32. parallel_rows() splits between whole rows
// of `width` elements.
template <class F>
void parallel_rows(std::int64_t rows, std::int64_t width, F&& f) {
  parallel_for(rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, width)), f, 4);
}
template <class F>
void parallel_elements(std::int64_t n, F&& f) {
  parallel_rows(n, 1, f);
}

// Returns the number of rows per block for kernels that keep a partial sum for each block. From 512 rows on, the number
// of blocks is a multiple of eight and at most 256, so that 2, 4 or 8 threads have equal shares. A block then has at
// least 64 rows. Among the possible numbers of blocks, the function chooses the number with the fullest last block.
// Fewer than 512 rows make up to eight blocks. All kernels of this kind use this function, so that an op has the same
// bits alone and as part of a fused op.
std::int64_t partial_rows(std::int64_t rows);

// The smallest number of operations (about 5 us on one core) for which a product uses several threads. Below this
// number, waking other threads would cost more time than the product.
constexpr std::int64_t small_product = 500'000;

// The number of parts that a sum or product is split into, if the bits of the result depend on the number of parts.
// fixed_parts does not depend on the number of threads.
constexpr std::int64_t fixed_parts = 8;

// While an object of this class lives, oneDNN uses one thread for calls from this thread. Plumb runs the parallel loops
// itself. OpenMP's threads, which spin while they wait, are never started. Each OneDnnCall (onednn_primitives.h)
// contains a OneThread.
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
