// The caching allocator. Fresh memory costs as much time as the arithmetic that fills it (page faults), so freed
// buffers are reused. Small buffers have their own heap: a long-lived small buffer between large ones would keep the
// freed space around it from joining again.
#include "core/storage.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

#include "core/error.h"
#include "core/heap.h"

namespace plumb {
namespace {

// Takes each block directly from the system and returns it to the system.
class System {
 public:
  explicit System(Memory& memory) : memory_(memory) {}
  HeapBlock* allocate(std::size_t bytes) {
    auto block = std::make_unique<HeapBlock>();
    block->bytes = std::max<std::size_t>(bytes + 63, 64) / 64 * 64;
    block->data =
        on_host() ? static_cast<std::byte*>(std::aligned_alloc(64, block->bytes)) : memory_.reserve(block->bytes);
    if (!block->data) throw std::bad_alloc();
    reserved_ += block->bytes;
    ++system_allocations_;
    return block.release();
  }
  void release(HeapBlock* block) noexcept {
    reserved_ -= block->bytes;
    on_host() ? std::free(block->data) : memory_.give_back(block->data, block->bytes);
    delete block;
  }
  void trim() noexcept {}
  std::size_t reserved() const { return reserved_; }
  std::uint64_t system_allocations() const { return system_allocations_; }

 private:
  bool on_host() const { return &memory_ == &host_memory(); }

  Memory& memory_;
  std::size_t reserved_ = 0;
  std::uint64_t system_allocations_ = 0;
};

using Pool = std::conditional_t<buffers_are_reused, Heap, System>;

constexpr std::size_t large_from = std::size_t{64} << 10;  // smallest size in bytes of a large buffer

// Tests set this environment variable to fill fresh buffers with NaN, so that a kernel that
// reads unwritten memory fails.
const bool fills_fresh_buffers = std::getenv("PLUMB_FILL_FRESH_BUFFERS") != nullptr;

class Cache {
 public:
  explicit Cache(Memory& memory)
      : memory_(memory), most_(on_host() ? memory.room().total : 0), small_(memory), large_(memory) {}

  HeapBlock* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    HeapBlock* const block = allocate_or_trim(bytes);
    if (fills_fresh_buffers) memory_.fill(block->data, 0xff, block->bytes);
    in_use_ += block->bytes;
    peak_ = std::max(peak_, in_use_);
    ++allocations_;
    allocated_ += block->bytes;
    return block;
  }

  void release(HeapBlock* block, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    in_use_ -= block->bytes;
    pool(bytes).release(block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    small_.trim();
    large_.trim();
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return {.in_use = in_use_,
            .peak = peak_,
            .reserved = small_.reserved() + large_.reserved(),
            .allocations = allocations_,
            .allocated = allocated_,
            .system_allocations = small_.system_allocations() + large_.system_allocations()};
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = in_use_;
  }

 private:
  // Allocates a block. If the system has no more memory, gives free memory back and tries once more. The host refuses
  // a size that the whole machine cannot hold: Linux may supply such memory, and end the process when it is used.
  HeapBlock* allocate_or_trim(std::size_t bytes) {
    if (most_ > 0 && (bytes > most_ || in_use_ > most_ - bytes)) refuse(bytes);
    try {
      return pool(bytes).allocate(bytes);
    } catch (const std::bad_alloc&) {
    }
    small_.trim();
    large_.trim();
    try {
      return pool(bytes).allocate(bytes);
    } catch (const std::bad_alloc&) {
      refuse(bytes);
    }
  }

  [[noreturn]] void refuse(std::size_t bytes) const {
    const Memory::Room room = memory_.room();
    const char* const where = on_host() ? "host" : "device";
    const auto mib = [](std::size_t n) { return static_cast<double>(n) / 0x1p20; };
    throw OutOfMemory(fmt::format(
        "out of memory on the {}: asked for {} bytes ({:.1f} MiB); {:.1f} MiB are in use, {:.1f} MiB are reserved, and "
        "{:.1f} of {:.1f} MiB of the {} are free",
        where, bytes, mib(bytes), mib(in_use_), mib(small_.reserved() + large_.reserved()), mib(room.free),
        mib(room.total), where));
  }

  bool on_host() const { return &memory_ == &host_memory(); }

  Pool& pool(std::size_t bytes) { return bytes < large_from ? small_ : large_; }

  std::mutex mutex_;
  Memory& memory_;
  const std::size_t most_;  // the bytes that the host can hold; 0 if not known, and for a device
  Pool small_, large_;
  std::size_t in_use_ = 0, peak_ = 0;
  std::uint64_t allocations_ = 0, allocated_ = 0;
};

// The caches are never destroyed, because storages with static lifetime may outlive any static object.
Cache& cache_of(Device device) {
  static Cache& host = *new Cache(host_memory());
  if (in_host_memory(device)) return host;
  static Cache& cuda = *new Cache(cuda_memory());
  return cuda;
}

}  // namespace

Storage::Storage(std::size_t size, Device of) : bytes(size), device(of), block_(cache_of(of).allocate(size)) {
  data = block_->data;
}
Storage::Storage(std::shared_ptr<Storage> whole, std::size_t begin, std::size_t size)
    : data(static_cast<std::byte*>(whole->data) + begin),
      bytes(size),
      device(whole->device),
      block_(nullptr),
      whole_(std::move(whole)) {}
Storage::~Storage() {
  if (block_) cache_of(device).release(block_, bytes);
}

Memory& memory_of(Device device) { return in_host_memory(device) ? host_memory() : cuda_memory(); }

MemoryStats memory_stats(Device device) { return cache_of(device).stats(); }
void reset_peak_memory(Device device) { cache_of(device).reset_peak(); }
void release_cached_memory(Device device) { cache_of(device).trim(); }

}  // namespace plumb
