// A heap for buffers of any size. To waste little memory, the heap takes the best-fitting free block, splits this block
// to the requested size, and joins freed blocks with free neighbours.
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
  std::size_t bytes = 0;      // a multiple of Heap::granule
  HeapRegion* region = nullptr;
  HeapBlock *before = nullptr, *after = nullptr;   // neighbours by address
  HeapBlock *previous = nullptr, *next = nullptr;  // neighbours in the list of free blocks of about the same size
  bool free = false;
};

// The heap reserves regions: address space far larger than its current use. A region gets memory in chunks of the size
// of a huge page. A chunk gets memory when the first block in the chunk is allocated. Therefore a growing heap has no
// gaps and requests only the missing chunks, and free chunks can go back to the system even if their neighbours are
// used. All bookkeeping lies outside the blocks: a write past the end of a block corrupts the data of its neighbour but
// never the heap. The chosen block depends only on the sequence of calls, not on addresses. A heap is not thread-safe.
class Heap {
 public:
  // Block sizes are multiples of `granule` bytes; memory comes from the system in multiples of `chunk` bytes.
  static constexpr std::size_t granule = 64, chunk = Memory::chunk;

  explicit Heap(Memory& memory);  // `memory` must outlive the heap
  ~Heap();                        // gives all memory back, including that of used blocks
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Returns a block of at least `bytes` and at least one granule, uninitialised. Throws std::bad_alloc if the system
  // has no more memory; existing blocks are then unchanged, and chunks that were already supplied stay in the heap.
  HeapBlock* allocate(std::size_t bytes);
  // Frees a block that allocate() returned.
  void release(HeapBlock* block) noexcept;
  // Gives chunks without used blocks back to the system; if the memory has no chunks (Memory::by_chunks), regions
  // without used blocks.
  void trim() noexcept;

  // The bytes that the heap has taken from the system and not given back.
  std::size_t reserved() const { return reserved_; }
  // The number of calls of allocate() that took memory from the system.
  std::uint64_t system_allocations() const { return system_allocations_; }

 private:
  static constexpr std::size_t steps = 32;  // number of free lists for each power of two of granules
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
  std::array<std::uint64_t, (lists + 63) / 64> filled_{};  // bit i is set if free_[i] is not empty
  std::deque<HeapBlock> records_;
  HeapBlock* spare_ = nullptr;  // records without a block, linked by `next`
  std::size_t reserved_ = 0;
  std::uint64_t system_allocations_ = 0;
};

}  // namespace plumb
