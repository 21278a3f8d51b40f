// The memory of a device: where it comes from, and how bytes get in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device.h"

namespace plumb {

// What was asked of a device, since the process began.
struct Traffic {
  std::uint64_t launches = 0;  // of kernels
  std::uint64_t bytes = 0;  // of the operands of launches and of copies within the device, each read or written whole
  std::uint64_t through_host = 0;      // calls that the device has no kernel for: their arrays go to the host and back
  std::uint64_t uploads = 0;           // copies from the host ..
  std::uint64_t downloads = 0;         // .. to it ..
  std::uint64_t copies = 0;            // .. and within the device
  std::uint64_t synchronizations = 0;  // how often the host waited for all of it; each download does
  std::uint64_t readbacks = 0;  // copies to the host that nobody waited for when they were asked for (core/readback.h)
  std::uint64_t paced = 0;  // how often the host waited for something of an earlier step, with later work under way: a
                            // readback, room to upload
};

// A copy to the host that is under way.
class Download {
 public:
  virtual ~Download() = default;
  virtual bool arrived() = 0;            // without waiting
  virtual const std::byte* bytes() = 0;  // good while this lives; waits for them
};

// A heap (core/heap.h) takes regions, address ranges far larger than what is used, and supplies chunks of them with
// memory when they are first needed. (Where buffers are not used again, under AddressSanitizer, each is a region of its
// own size.) Copies happen in the order of the calls that the device has got, kernels among them.
class Memory {
 public:
  // What memory comes in: sizes of heaps' regions are multiples of it, and where they are supplied piece by piece their
  // addresses too.
  static constexpr std::size_t chunk = std::size_t{2} << 20;  // bytes

  virtual ~Memory() = default;
  virtual std::size_t usual_region() const = 0;       // bytes of a region, chunks, unless more is asked for
  virtual std::byte* reserve(std::size_t bytes) = 0;  // a region without memory; null where there are no addresses
  virtual void give_back(std::byte* region,
                         std::size_t bytes) noexcept = 0;         // a whole one; waits for the calls that use it
  virtual void supply(std::byte* chunks, std::size_t bytes) = 0;  // throws std::bad_alloc where the system has no more
  virtual void withdraw(std::byte* chunks, std::size_t bytes) noexcept = 0;  // contents are lost; waits as give_back

  virtual void upload(const void* host, void* device,
                      std::size_t bytes) = 0;  // `host` may change as soon as it returns
  virtual void download(const void* device, void* host, std::size_t bytes) = 0;  // waits for what the bytes depend on
  // The same without waiting, of few bytes: at most most_at_once.
  static constexpr std::size_t most_at_once = 256;
  virtual std::unique_ptr<Download> begin_download(const void* device, std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;  // both of this memory, not overlapping
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;
  virtual void synchronize() = 0;                 // waits for all calls
  virtual Traffic traffic() const { return {}; }  // none is counted on the host
};

// Pages of this process: what the reference and the cpu backend compute in.
Memory& host_memory();
Memory& cuda_memory();  // throws an Error where there is no device (why_no_cuda)
// Where the arrays of a device lie.
Memory& memory_of(Device device);

}  // namespace plumb
