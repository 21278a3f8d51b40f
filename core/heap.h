// Memory for buffers of any size, used again without waste: best fit, split to the size asked for, joined with free
// neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/memory.h"

namespace plumb {

struct HeapRegion;

// A used or free piece of a region.
struct HeapBlock {
  std::byte* data = nullptr;  // aligned to Heap::granule
  std::size_t bytes = 0;      // a multiple of it
  HeapRegion* region = nullptr;
  HeapBlock *before = nullptr, *after = nullptr;   // neighbours by address
  HeapBlock *previous = nullptr, *next = nullptr;  // free blocks of about the same size
  bool free = false;
};

// A region is address space reserved ahead, far more than is used; memory comes into it in chunks of the size of a huge
// page, when a block that lies there is first given out. So there is one seamless heap that grows by what is missing,
// and free chunks go back even from between used ones. All bookkeeping lives outside of the blocks: a write past the
// end of one spoils a neighbour's numbers but never the heap. Which block is chosen depends on the sequence of calls
// alone, not on addresses. Not thread-safe.
class Heap {
 public:
  static constexpr std::size_t granule = 64, chunk = Memory::chunk;  // bytes

  explicit Heap(Memory& memory);  // which outlives it
  ~Heap();                        // gives back everything, blocks in use too
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // At least `bytes` and at least one granule, uninitialised. Throws std::bad_alloc where the system has no more;
  // blocks are as before, and chunks that came until then stay.
  HeapBlock* allocate(std::size_t bytes);
  void release(HeapBlock* block) noexcept;  // one that allocate returned
  void trim() noexcept;                     // gives chunks without used blocks back to the system

  std::size_t reserved() const { return reserved_; }  // bytes taken from the system and not given back
  std::uint64_t system_allocations() const {
    return system_allocations_;
  }  // calls of allocate that took memory from it

 private:
  static constexpr std::size_t steps = 32;  // lists of free blocks to a power of two of granules
  static constexpr std::size_t lists = 54 * steps;

  static std::size_t list_of(std::size_t bytes);
  std::size_t next_filled(std::size_t list) const;
  HeapBlock* best_fit(std::size_t bytes) const;
  HeapBlock* add_region(std::size_t bytes);
  void supply(HeapRegion& region, const std::byte* data, std::size_t bytes);
  HeapBlock* take_record() noexcept;
  void swallow_next(HeapBlock* block) noexcept;
  void link(HeapBlock* block) noexcept;
  void unlink(HeapBlock* block) noexcept;

  Memory& memory_;
  std::vector<std::unique_ptr<HeapRegion>> regions_;
  std::array<HeapBlock*, lists> free_{};
  std::array<std::uint64_t, (lists + 63) / 64> filled_{};  // bit i: free_[i] is not empty
  std::deque<HeapBlock> records_;
  HeapBlock* spare_ = nullptr;  // records without a block, linked by `next`
  std::size_t reserved_ = 0;
  std::uint64_t system_allocations_ = 0;
};

}  // namespace plumb
