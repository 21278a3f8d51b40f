// Parallel loops and the number of threads. This is the only file that uses OpenMP. OpenMP is used here to keep oneDNN
// on the calling thread, because oneDNN would otherwise start OpenMP's threads.
#include "backends/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/thread_share.h"

namespace plumb {
namespace {

std::atomic<int> wanted_threads{0};
std::atomic<bool> strict{false};

// Pools that no ThreadShare uses at the moment. The threads of a pool never end, so the next ThreadShare reuses the
// pool.
struct FreePools {
  std::mutex mutex;
  std::vector<cpu::ThreadPool*> pools;
};
FreePools& free_pools() {
  static FreePools& f = *new FreePools;
  return f;
}

cpu::ThreadPool& take_pool() {
  FreePools& free = free_pools();
  const std::lock_guard lock(free.mutex);
  if (free.pools.empty()) return *new cpu::ThreadPool;
  cpu::ThreadPool& pool = *free.pools.back();
  free.pools.pop_back();
  return pool;
}

}  // namespace

thread_local ThreadShare* ThreadShare::current = nullptr;

ThreadShare::ThreadShare(int threads)
    : threads_(std::max(1, threads)),
      pool_(threads_ > 1 ? &take_pool() : nullptr),
      outer_(std::exchange(current, this)) {}

ThreadShare::~ThreadShare() {
  current = outer_;
  if (!pool_) return;
  FreePools& free = free_pools();
  const std::lock_guard lock(free.mutex);
  free.pools.push_back(pool_);
}

cpu::ThreadPool& pool_of_this_thread() {
  return ThreadShare::current && ThreadShare::current->pool_ ? *ThreadShare::current->pool_
                                                             : cpu::ThreadPool::instance();
}

void set_num_threads(int n) { wanted_threads.store(n > 0 ? n : omp_get_num_procs()); }

void set_strict_determinism(bool on) { strict.store(on); }
bool strict_determinism() { return strict.load(std::memory_order_relaxed); }

int num_threads() {
  if (ThreadShare::current) return ThreadShare::current->threads_;
  const int n = wanted_threads.load();
  if (n > 0) return n;
  static const int initial = omp_get_max_threads();  // omp_get_max_threads() respects OMP_NUM_THREADS
  return initial;
}

namespace cpu {

void run_blocks(std::int64_t blocks, bool parallel, void* context, BlockBody body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(num_threads(), blocks));
  if (parallel && threads > 1 && !omp_in_parallel() && pool_of_this_thread().run(blocks, threads, context, body))
    return;
  for (std::int64_t i = 0; i < blocks; ++i) body(context, i);
}

std::int64_t partial_rows(std::int64_t rows) {
  if (rows < 512) {
    const std::int64_t blocks = std::clamp<std::int64_t>(rows / 32, 1, 8);
    return std::max<std::int64_t>(1, (rows + blocks - 1) / blocks);
  }
  const std::int64_t most = std::min<std::int64_t>(rows / 64, 256);
  std::int64_t best = 0, least_missing = rows;
  for (std::int64_t blocks = most / 8 * 8; blocks > most / 2 || best == 0; blocks -= 8) {
    const std::int64_t block = (rows + blocks - 1) / blocks, missing = block * blocks - rows;
    if (missing < block && missing < least_missing)
      best = block, least_missing = missing;  // if a whole block were missing, there would be fewer blocks
  }
  return best;
}

OneThread::OneThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(saved_); }

}  // namespace cpu
}  // namespace plumb
