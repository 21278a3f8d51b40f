// The only place that knows OpenMP.
#include "backends/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/backend.h"

#if defined(__SANITIZE_THREAD__)
#define PLUMB_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLUMB_TSAN 1
#endif
#endif

// ThreadSanitizer cannot see libgomp's barriers and would report a race in every region, so they are told to it here.
#ifdef PLUMB_TSAN
extern "C" void __tsan_acquire(void* tag);
extern "C" void __tsan_release(void* tag);
#define PLUMB_ACQUIRE(tag) __tsan_acquire(tag)
#define PLUMB_RELEASE(tag) __tsan_release(tag)
#else
#define PLUMB_ACQUIRE(tag) static_cast<void>(tag)
#define PLUMB_RELEASE(tag) static_cast<void>(tag)
#endif

namespace plumb {
namespace {

std::atomic<int> wanted_threads{0};
std::atomic<bool> strict{false};

}  // namespace

void set_num_threads(int n) { wanted_threads.store(n > 0 ? n : omp_get_num_procs()); }

void set_strict_determinism(bool on) { strict.store(on); }
bool strict_determinism() { return strict.load(std::memory_order_relaxed); }

int num_threads() {
  const int n = wanted_threads.load();
  if (n > 0) return n;
  static const int initial = omp_get_max_threads();  // honours OMP_NUM_THREADS
  return initial;
}

namespace cpu {
namespace {

struct Work {
  std::int64_t blocks;
  void* context;
  BlockBody body;
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  char begin = 0, end = 0;  // tags for ThreadSanitizer

  void run_share(int thread, int threads) {
    const std::int64_t first = blocks * thread / threads, last = blocks * (thread + 1) / threads;
    try {
      for (std::int64_t i = first; i < last && !failed.load(std::memory_order_relaxed); ++i) body(context, i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
};

#ifdef PLUMB_TSAN
__attribute__((noinline, no_sanitize("thread")))
#endif
void region(Work& work, int threads) {
  PLUMB_RELEASE(&work.begin);
#pragma omp parallel num_threads(threads)
  {
    PLUMB_ACQUIRE(&work.begin);
    work.run_share(omp_get_thread_num(), omp_get_num_threads());
    PLUMB_RELEASE(&work.end);
  }
  PLUMB_ACQUIRE(&work.end);
}

}  // namespace

void run_blocks(std::int64_t blocks, bool parallel, void* context, BlockBody body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(num_threads(), blocks));
  if (!parallel || threads < 2 || omp_in_parallel()) {
    for (std::int64_t i = 0; i < blocks; ++i) body(context, i);
    return;
  }
  Work work{.blocks = blocks, .context = context, .body = body, .error = nullptr};
  region(work, threads);
  if (work.error) std::rethrow_exception(work.error);
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
    if (missing < block && missing < least_missing) best = block, least_missing = missing;  // missing a whole block, there would be fewer
  }
  return best;
}

OneThread::OneThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(saved_); }

int share_num_threads() {
  const int n = num_threads();
  if (omp_get_max_threads() != n) omp_set_num_threads(n);
  return n;
}

}  // namespace cpu
}  // namespace plumb
