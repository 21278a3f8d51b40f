// The interface to the memory of a device: reserves and supplies memory, and copies bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace plumb {

// Counts of the work that a device was given since the process began, or between two times.
struct Traffic {
  std::uint64_t launches = 0;      // kernel launches
  std::uint64_t bytes = 0;         // bytes of the whole arrays in launches and in copies within the device
  std::uint64_t through_host = 0;  // calls of kernels that the device does not have: the arrays go to the host and back
  std::uint64_t uploads = 0;       // copies from the host
  std::uint64_t downloads = 0;     // copies to the host
  std::uint64_t copies = 0;        // copies within the device
  std::uint64_t synchronizations = 0;  // waits of the host for all work of the device; each download counts as one wait
  std::uint64_t readbacks = 0;         // copies to the host that do not wait when they are requested (core/readback.h)
  // The number of times that the host waited for work of an earlier step while later work was under way. Such waits are
  // for a readback, or for space to upload.
  std::uint64_t paced = 0;
  std::uint64_t plain_products = 0;  // matrix products that the library of the device refused

  // The counts since an earlier time, from those of both times.
  Traffic since(const Traffic& earlier) const {
    Traffic t = *this;
    for (const auto member :
         {&Traffic::launches, &Traffic::bytes, &Traffic::through_host, &Traffic::uploads, &Traffic::downloads,
          &Traffic::copies, &Traffic::synchronizations, &Traffic::readbacks, &Traffic::paced, &Traffic::plain_products})
      t.*member -= earlier.*member;
    return t;
  }
};

// A copy to the host that is under way.
class Download {
 public:
  virtual ~Download() = default;
  // Whether the bytes have arrived; does not wait.
  virtual bool arrived() = 0;
  // Waits for the bytes. The pointer is valid while this object lives.
  virtual const std::byte* bytes() = 0;
};

// The memory of a device. A heap (core/heap.h) reserves regions, which are address ranges far larger than the heap's
// use, and supplies a chunk of a region with memory when the chunk is first needed. (Under AddressSanitizer, where
// buffers are not reused, each buffer is a region.) The device executes copies and kernels in the order of the calls.
class Memory {
 public:
  // The unit in which memory is supplied. The sizes of a heap's regions are multiples of this unit. If regions are
  // supplied in pieces, their addresses are multiples of this unit too.
  static constexpr std::size_t chunk = std::size_t{2} << 20;  // size in bytes

  virtual ~Memory() = default;
  // The size in bytes of a region, unless a larger region is requested; a multiple of `chunk`.
  virtual std::size_t usual_region() const = 0;
  // Whether chunks of a region get and lose their memory one by one. If not, a region has its memory from reserve()
  // until give_back(), and supply() and withdraw() do nothing.
  virtual bool by_chunks() const { return true; }
  // The free and total bytes of a memory; both 0 if not known.
  struct Room {
    std::size_t free = 0, total = 0;
  };
  // The free and total bytes of this memory now.
  virtual Room room() const { return {}; }
  // Reserves a region, without memory if by_chunks(). Returns null if there is not enough address space.
  virtual std::byte* reserve(std::size_t bytes) = 0;
  // Gives back a whole region. Waits for the calls that use the region.
  virtual void give_back(std::byte* region, std::size_t bytes) noexcept = 0;
  // Supplies chunks with memory. Throws std::bad_alloc if the system has no more memory.
  virtual void supply(std::byte* chunks, std::size_t bytes) = 0;
  // Takes the memory of chunks back; the contents of the chunks are lost. Waits for the calls that use the chunks.
  virtual void withdraw(std::byte* chunks, std::size_t bytes) noexcept = 0;

  // Copies bytes from the host. `host` may be changed as soon as the function returns.
  virtual void upload(const void* host, void* device, std::size_t bytes) = 0;
  // Copies bytes to the host. Waits for the calls that the bytes depend on.
  virtual void download(const void* device, void* host, std::size_t bytes) = 0;
  // Begins a copy of at most most_at_once bytes to the host, without waiting.
  static constexpr std::size_t most_at_once = 256;
  virtual std::unique_ptr<Download> begin_download(const void* device, std::size_t bytes) = 0;
  // Copies bytes within this memory. The ranges must not overlap.
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  // Sets every byte of the range to `byte`.
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;
  // Waits for all calls.
  virtual void synchronize() = 0;
  // The counts of this device; all 0 for host memory, where nothing is counted.
  virtual Traffic traffic() const { return {}; }
};

// The memory of this process, which the reference and cpu backends use.
Memory& host_memory();
// The memory of the GPU. Throws Error with the text of why_no_cuda() if no device can be used.
Memory& cuda_memory();
// The memory that holds the arrays of a device. Throws Error like cuda_memory().
Memory& memory_of(Device device);

}  // namespace plumb
