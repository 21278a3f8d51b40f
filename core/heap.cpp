// The best-fit heap behind the caching allocator.
#include "core/heap.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <utility>

namespace plumb {
namespace {

// The bytes of a region if a region of the usual size cannot be reserved.
constexpr std::size_t small_region = std::size_t{32} << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

struct HeapRegion {
  Memory& memory;
  std::byte* data;
  std::size_t bytes;
  HeapBlock* first = nullptr;
  std::vector<bool> supplied = std::vector<bool>(bytes / Heap::chunk);  // true for chunks that have memory

  HeapRegion(Memory& m, std::byte* p, std::size_t n) : memory(m), data(p), bytes(n) {}
  ~HeapRegion() { memory.give_back(data, bytes); }
  HeapRegion(const HeapRegion&) = delete;
  HeapRegion& operator=(const HeapRegion&) = delete;

  // Calls f(begin, end) for each longest run of chunks in [begin, end) whose `supplied` equals `value`.
  template <class F>
  void runs(std::size_t begin, std::size_t end, bool value, F&& f) {
    while (begin < end) {
      std::size_t stop = begin;
      while (stop < end && supplied[stop] == value) ++stop;
      if (stop > begin) f(begin, stop);
      begin = stop + 1;
    }
  }

  void mark(std::size_t begin, std::size_t end, bool value) {
    std::fill(supplied.begin() + static_cast<std::ptrdiff_t>(begin),
              supplied.begin() + static_cast<std::ptrdiff_t>(end), value);
  }
};

Heap::Heap(Memory& memory) : memory_(memory) {}
Heap::~Heap() = default;

// The free list for blocks of this size. Below 2 * steps granules there is one list for each number of granules; above
// that, there are `steps` lists for each power of two.
std::size_t Heap::list_of(std::size_t bytes) {
  const std::size_t n = bytes / granule;
  if (n < steps) return n;
  const auto shift = static_cast<std::size_t>(std::bit_width(n)) - static_cast<std::size_t>(std::bit_width(steps));
  return shift * steps + (n >> shift);
}

// Returns the smallest free block that holds `bytes`, or nullptr. If several blocks have this size, returns the block
// that was freed last, which may still be in the CPU's caches.
HeapBlock* Heap::best_fit(std::size_t bytes) const {
  for (std::size_t list = next_filled(list_of(bytes)); list < lists; list = next_filled(list + 1)) {
    HeapBlock* best = nullptr;
    for (HeapBlock* b = free_[list]; b && (!best || best->bytes > bytes); b = b->next) {
      if (b->bytes >= bytes && (!best || b->bytes < best->bytes)) best = b;
    }
    if (best) return best;
  }
  return nullptr;
}

// Returns the first list at or after `list` that is not empty. If all these lists are empty, returns `lists`.
std::size_t Heap::next_filled(std::size_t list) const {
  std::uint64_t ignored = (std::uint64_t{1} << (list % 64)) - 1;
  for (std::size_t word = list / 64; word < filled_.size(); ++word, ignored = 0) {
    if (const std::uint64_t left = filled_[word] & ~ignored)
      return word * 64 + static_cast<std::size_t>(std::countr_zero(left));
  }
  return lists;
}

// Reserves a new region, supplies memory for its first `bytes`, and returns it as one free block.
HeapBlock* Heap::add_region(std::size_t bytes) {
  std::byte* data = nullptr;
  std::size_t size = 0;
  for (const std::size_t usual : {memory_.usual_region(), std::min(memory_.usual_region(), small_region)}) {
    if (data) break;
    size = std::max(round_up(bytes, chunk), usual);
    data = memory_.reserve(size);
  }
  if (!data) throw std::bad_alloc();
  HeapRegion& region = *regions_.emplace_back(std::make_unique<HeapRegion>(memory_, data, size));
  try {
    supply(region, data, memory_.by_chunks() ? bytes : size);
  } catch (...) {
    regions_.pop_back();
    throw;
  }
  HeapBlock* const block = take_record();
  *block = {.data = data, .bytes = size, .region = &region};
  region.first = block;
  link(block);
  return block;
}

// Takes memory from the system for the chunks of [data, data + bytes) that have no memory.
void Heap::supply(HeapRegion& region, const std::byte* data, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(data - region.data);
  bool taken = false;
  region.runs(offset / chunk, (offset + bytes - 1) / chunk + 1, false, [&](std::size_t begin, std::size_t end) {
    memory_.supply(region.data + begin * chunk, (end - begin) * chunk);
    region.mark(begin, end, true);
    reserved_ += (end - begin) * chunk;
    taken = true;
  });
  system_allocations_ += taken;
}

HeapBlock* Heap::allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - chunk) throw std::bad_alloc();
  bytes = round_up(std::max(bytes, granule), granule);
  // Makes the two records that a new region and a split need. After this loop, only a lack of memory can fail the call.
  while (!spare_ || !spare_->next) {
    HeapBlock& record = records_.emplace_back();
    record.next = std::exchange(spare_, &record);
  }
  HeapBlock* block = best_fit(bytes);
  if (!block) block = add_region(bytes);
  supply(*block->region, block->data, bytes);
  unlink(block);
  block->free = false;
  if (block->bytes > bytes) {
    HeapBlock* const rest = take_record();
    *rest = {.data = block->data + bytes,
             .bytes = block->bytes - bytes,
             .region = block->region,
             .before = block,
             .after = block->after};
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    link(rest);
  }
  return block;
}

void Heap::release(HeapBlock* block) noexcept {
  if (HeapBlock* const before = block->before; before && before->free) {
    unlink(before);
    swallow_next(before);
    block = before;
  }
  if (HeapBlock* const after = block->after; after && after->free) {
    unlink(after);
    swallow_next(block);
  }
  link(block);
}

void Heap::trim() noexcept {
  if (!memory_.by_chunks()) {
    std::erase_if(regions_, [&](const std::unique_ptr<HeapRegion>& region) {
      HeapBlock* const only = region->first;
      if (!only->free || only->after) return false;
      unlink(only);
      only->next = std::exchange(spare_, only);
      reserved_ -= region->bytes;
      return true;
    });
    return;
  }
  for (const auto& region : regions_) {
    for (HeapBlock* b = region->first; b; b = b->after) {
      if (!b->free) continue;
      const auto offset = static_cast<std::size_t>(b->data - region->data);
      region->runs((offset + chunk - 1) / chunk, (offset + b->bytes) / chunk, true,
                   [&](std::size_t begin, std::size_t end) {
                     memory_.withdraw(region->data + begin * chunk, (end - begin) * chunk);
                     region->mark(begin, end, false);
                     reserved_ -= (end - begin) * chunk;
                   });
    }
  }
}

HeapBlock* Heap::take_record() noexcept { return std::exchange(spare_, spare_->next); }

// Joins `block` with its next neighbour. Neither block may be in a free list.
void Heap::swallow_next(HeapBlock* block) noexcept {
  HeapBlock* const gone = block->after;
  block->bytes += gone->bytes;
  block->after = gone->after;
  if (block->after) block->after->before = block;
  gone->next = std::exchange(spare_, gone);
}

void Heap::link(HeapBlock* block) noexcept {
  const std::size_t list = list_of(block->bytes);
  block->free = true;
  block->previous = nullptr;
  block->next = std::exchange(free_[list], block);
  if (block->next) block->next->previous = block;
  filled_[list / 64] |= std::uint64_t{1} << (list % 64);
}

void Heap::unlink(HeapBlock* block) noexcept {
  const std::size_t list = list_of(block->bytes);
  (block->previous ? block->previous->next : free_[list]) = block->next;
  if (block->next) block->next->previous = block->previous;
  if (!free_[list]) filled_[list / 64] &= ~(std::uint64_t{1} << (list % 64));
}

}  // namespace plumb
