// Storage: a reference-counted buffer from the caching allocator, and statistics of memory use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace plumb {

struct HeapBlock;

// 64-byte aligned, uninitialised memory of a device. `version` counts in-place changes, so that the backward pass can
// detect that a saved value was changed. If the device has not enough memory, the constructor throws OutOfMemory
// (core/error.h), which names the bytes.
struct Storage {
  explicit Storage(std::size_t size, Device device = Device::cpu);
  // A part of the bytes of `whole`. The bytes stay alive as long as this part.
  Storage(std::shared_ptr<Storage> whole, std::size_t begin, std::size_t size);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;  // address in the memory of the device
  std::size_t bytes;
  Device device;
  std::uint32_t version = 0;  // number of recorded in-place changes

 private:
  HeapBlock* block_;  // null for a part of another storage
  std::shared_ptr<Storage> whole_;
};

// Whether freed memory is reused without a request to the system. The value is false under AddressSanitizer, which puts
// red zones around every buffer.
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

// The memory use of this process's arrays on a device. Devices that share a memory
// (reference and cpu) share the numbers.
struct MemoryStats {
  std::size_t in_use;                // bytes of live storages, each rounded up to 64
  std::size_t peak;                  // highest in_use since the last reset_peak_memory()
  std::size_t reserved;              // bytes taken from the system, in use or cached
  std::uint64_t allocations;         // storages made since the process began
  std::uint64_t allocated;           // total bytes of all storages made since the process began
  std::uint64_t system_allocations;  // allocations that took memory from the system
};
// The memory use of a device now.
MemoryStats memory_stats(Device device = Device::cpu);
// Sets the peak of a device to the memory that is in use now.
void reset_peak_memory(Device device = Device::cpu);
// Gives cached memory back to the system: the huge pages that hold no live storage.
void release_cached_memory(Device device = Device::cpu);

}  // namespace plumb
