// A reference-counted buffer from the caching allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace plumb {

struct HeapBlock;

// 64-byte aligned memory of a device, uninitialised. `version` counts in-place changes, so that a value saved for the
// backward pass can tell that somebody changed it.
struct Storage {
  explicit Storage(std::size_t size, Device device = Device::cpu);
  // A part of another's bytes, which live as long as it does.
  Storage(std::shared_ptr<Storage> whole, std::size_t begin, std::size_t size);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  std::size_t bytes;
  Device device;
  std::uint32_t version = 0;

 private:
  HeapBlock* block_;  // null for a part
  std::shared_ptr<Storage> whole_;
};

// Whether memory is used again without asking the system; not under AddressSanitizer, where every buffer gets red zones
// of its own.
#if defined(__SANITIZE_ADDRESS__)
#define PLUMB_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLUMB_ADDRESS_SANITIZER
#endif
#endif
#ifdef PLUMB_ADDRESS_SANITIZER
inline constexpr bool buffers_are_reused = false;
#else
inline constexpr bool buffers_are_reused = true;
#endif

// Memory use of this process's arrays on a device, and on all that share its memory.
struct MemoryStats {
  std::size_t in_use;                // bytes held by live storages, each rounded up to 64
  std::size_t peak;                  // highest in_use since the last reset_peak_memory()
  std::size_t reserved;              // bytes taken from the system, live or cached
  std::uint64_t allocations;         // storages made since the process began
  std::uint64_t allocated;           // bytes of them
  std::uint64_t system_allocations;  // those of them for which memory was taken from the system
};
MemoryStats memory_stats(Device device = Device::cpu);
void reset_peak_memory(Device device = Device::cpu);
// Gives cached memory back to the system: huge pages on which no live storage lies.
void release_cached_memory(Device device = Device::cpu);

}  // namespace plumb
