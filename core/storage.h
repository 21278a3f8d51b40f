// A reference-counted buffer from the caching allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace plumb {

// 64-byte aligned host memory, uninitialised. `version` counts in-place changes, so that a value saved for the backward pass
// can tell that somebody changed it.
struct Storage {
  explicit Storage(std::size_t size);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  std::size_t bytes;
  std::uint32_t version = 0;
};

// Memory use of this process's arrays, in bytes.
struct MemoryStats {
  std::size_t in_use;       // held by live storages
  std::size_t peak;         // highest in_use since the last reset_peak_memory()
  std::size_t reserved;     // taken from the system, live or cached
  std::uint64_t allocated;  // handed out since the program began
};
MemoryStats memory_stats();
void reset_peak_memory();
// Gives cached, unused buffers back to the system.
void release_cached_memory();

}  // namespace plumb
