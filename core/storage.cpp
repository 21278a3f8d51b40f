// The caching allocator. Fresh memory costs as much as the arithmetic that fills it (page faults), so freed buffers are kept by
// size class and used again. Classes are four to a power of two: at most 25 % is wasted. Buffers of 1 MiB and more are aligned to
// huge pages and the system is asked for them.
#include "core/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define PLUMB_CACHE_BUFFERS 0  // every buffer gets red zones of its own
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLUMB_CACHE_BUFFERS 0
#endif
#endif
#ifndef PLUMB_CACHE_BUFFERS
#define PLUMB_CACHE_BUFFERS 1
#endif

namespace plumb {
namespace {

constexpr std::size_t cache_line = 64, huge_page = std::size_t{2} << 20, huge_from = std::size_t{1} << 20;

std::size_t size_class(std::size_t bytes) {
  bytes = std::max(bytes, cache_line);
  if (!PLUMB_CACHE_BUFFERS) return (bytes + cache_line - 1) / cache_line * cache_line;
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, cache_line);
  return (bytes + step - 1) / step * step;
}

class Cache {
 public:
  void* allocate(std::size_t bytes) {
    const std::size_t size = size_class(bytes);
    const std::lock_guard lock(mutex_);
    stats_.in_use += size;
    stats_.allocated += size;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    if (std::vector<void*>& free = free_[size]; !free.empty()) {
      void* p = free.back();
      free.pop_back();
      return p;
    }
    const bool huge = PLUMB_CACHE_BUFFERS && size >= huge_from;
    void* p = std::aligned_alloc(huge ? huge_page : cache_line, huge ? (size + huge_page - 1) / huge_page * huge_page : size);
    if (!p) {
      stats_.in_use -= size;
      throw std::bad_alloc();
    }
    if (huge) madvise(p, (size + huge_page - 1) / huge_page * huge_page, MADV_HUGEPAGE);
    stats_.reserved += size;
    return p;
  }

  void release(void* p, std::size_t bytes) noexcept {
    const std::size_t size = size_class(bytes);
    const std::lock_guard lock(mutex_);
    stats_.in_use -= size;
    if (PLUMB_CACHE_BUFFERS) {
      try {
        free_[size].push_back(p);
        return;
      } catch (const std::bad_alloc&) {  // no room to remember it: give it back
      }
    }
    stats_.reserved -= size;
    std::free(p);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, buffers] : free_) {
      stats_.reserved -= size * buffers.size();
      for (void* p : buffers) std::free(p);
      buffers.clear();
    }
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak = stats_.in_use;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  MemoryStats stats_{};
};

// Never destroyed: storages with static lifetime may outlive any static object.
Cache& cache() {
  static Cache& c = *new Cache;
  return c;
}

}  // namespace

Storage::Storage(std::size_t size) : data(cache().allocate(size)), bytes(size) {}
Storage::~Storage() { cache().release(data, bytes); }

MemoryStats memory_stats() { return cache().stats(); }
void reset_peak_memory() { cache().reset_peak(); }
void release_cached_memory() { cache().trim(); }

}  // namespace plumb
