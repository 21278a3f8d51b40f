#include "core/heap.h"

#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace plumb;

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

struct Live {
  HeapBlock* block;
  std::size_t asked;
  unsigned char mark;
};

// Returns the number of pages of address space that this process has.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

void fill(const Live& l) { std::memset(l.block->data, l.mark, l.asked); }
bool intact(const Live& l) {
  const auto* p = reinterpret_cast<const unsigned char*>(l.block->data);
  for (std::size_t i = 0; i < l.asked; i += i + 1 < l.asked ? std::min<std::size_t>(l.asked - 1 - i, 61) : 1) {
    if (p[i] != l.mark) return false;
  }
  return true;
}

// A memory whose addresses have no pages, like those of a GPU seen from the host: any access crashes. `Elsewhere`
// counts the requests of a heap.
class Elsewhere : public Memory {
 public:
  std::size_t room = 64 * mib, regions = 0, supplied = 0;
  bool chunks = true;

  bool by_chunks() const override { return chunks; }
  std::size_t usual_region() const override { return 32 * mib; }
  std::byte* reserve(std::size_t bytes) override {
    ++regions;
    return host_memory().reserve(bytes);
  }
  void give_back(std::byte* region, std::size_t bytes) noexcept override {
    --regions;
    host_memory().give_back(region, bytes);
  }
  void supply(std::byte*, std::size_t bytes) override {
    if (supplied + bytes > room) throw std::bad_alloc();
    supplied += bytes;
  }
  void withdraw(std::byte*, std::size_t bytes) noexcept override { supplied -= bytes; }
  void upload(const void*, void*, std::size_t) override { FAIL("a heap copies nothing"); }
  void download(const void*, void*, std::size_t) override { FAIL("a heap copies nothing"); }
  std::unique_ptr<Download> begin_download(const void*, std::size_t) override {
    throw std::logic_error("a heap copies nothing");
  }
  void copy(const void*, void*, std::size_t) override { FAIL("a heap copies nothing"); }
  void fill(void*, int, std::size_t) override { FAIL("a heap writes nothing"); }
  void synchronize() override { FAIL("a heap waits for nothing"); }
};

}  // namespace

TEST_CASE("a heap takes its memory chunk by chunk and never accesses it") {
  Elsewhere memory;
  {
    Heap heap(memory);
    std::vector<HeapBlock*> blocks;
    for (const std::size_t n : {100 * kib, 3 * mib, 20 * mib, 20 * mib}) blocks.push_back(heap.allocate(n));
    CHECK(memory.regions == 2);
    CHECK(memory.supplied == heap.reserved());
    CHECK(memory.supplied == 24 * mib + 20 * mib);
    CHECK_THROWS_AS(heap.allocate(30 * mib), std::bad_alloc);  // more than the memory has
    CHECK(memory.regions == 2);
    CHECK(memory.supplied == 44 * mib);
    heap.release(blocks[2]);
    heap.trim();
    CHECK(memory.supplied == 4 * mib + 20 * mib);
    CHECK(heap.allocate(19 * mib)->data == blocks[1]->data + 3 * mib);
    for (const std::size_t i : {0, 1, 3}) heap.release(blocks[i]);
  }
  CHECK(memory.regions == 0);
}

TEST_CASE("a heap of a memory without chunks gives back whole regions without used blocks") {
  Elsewhere memory;
  memory.chunks = false, memory.room = 1024 * mib;
  Heap heap(memory);
  HeapBlock* const kept = heap.allocate(1 * mib);
  HeapBlock* const beside = heap.allocate(20 * mib);  // the first region has 32 MiB
  HeapBlock* const alone = heap.allocate(40 * mib);
  CHECK(memory.regions == 2);
  CHECK(heap.reserved() == 72 * mib);
  heap.release(beside), heap.release(alone);
  heap.trim();
  CHECK(memory.regions == 1);
  CHECK(heap.reserved() == 32 * mib);
  CHECK(heap.allocate(30 * mib)->data == kept->data + 1 * mib);  // the rest of the first region is still there
  CHECK(heap.allocate(40 * mib) != nullptr);
  CHECK(memory.regions == 2);
}

TEST_CASE("a heap's live blocks never overlap, keep their contents, and join into one free block") {
  Heap heap(host_memory());
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  std::map<std::uintptr_t, Live> live;  // expected live blocks, by address
  std::size_t asked = 0, peak = 0;
  bool aligned = true, apart = true, kept = true;
  const auto release = [&](auto it) {
    kept &= intact(it->second);
    asked -= it->second.asked;
    heap.release(it->second.block);
    live.erase(it);
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t n = below(3) == 0 ? below(512 * kib) : below(2) ? below(8 * kib) : below(200);
    if (asked < 24 * mib && below(100) < 55) {
      const Live l{heap.allocate(n), n, static_cast<unsigned char>(i)};
      const auto at = reinterpret_cast<std::uintptr_t>(l.block->data);
      aligned &= at % Heap::granule == 0;
      const auto after = live.lower_bound(at);
      apart &= after == live.end() || at + l.block->bytes <= after->first;
      apart &= after == live.begin() || std::prev(after)->first + std::prev(after)->second.block->bytes <= at;
      apart &= l.block->bytes >= std::max<std::size_t>(n, 1) && l.block->bytes < n + 2 * Heap::granule;
      live[at] = l;
      fill(l);
      peak = std::max(peak, asked += n);
    } else if (!live.empty()) {
      const auto it = live.lower_bound(std::next(live.begin(), static_cast<std::ptrdiff_t>(below(live.size())))->first);
      release(it);
    }
    if (i % 1000 == 999) heap.trim();  // trim() must not take memory away from live blocks
  }
  while (!live.empty()) release(live.begin());
  CHECK(aligned);
  CHECK(apart);
  CHECK(kept);
  CHECK(peak > 20 * mib);

  heap.trim();
  CHECK(heap.reserved() == 0);
  heap.release(heap.allocate(64 * mib));
  const std::uint64_t before = heap.system_allocations();
  std::vector<HeapBlock*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(heap.allocate(64 * kib));
  for (std::size_t i = 0; i < 1000; i += 2) heap.release(pieces[i]);
  for (std::size_t i = 1; i < 1000; i += 2) heap.release(pieces[i]);
  heap.release(heap.allocate(64 * mib));  // all blocks have joined into one block again
  CHECK(heap.system_allocations() == before);
  CHECK(heap.reserved() == 64 * mib);
}

TEST_CASE("a heap takes the smallest free block that fits and keeps the remainder free") {
  Heap heap(host_memory());
  std::vector<HeapBlock*> held, gaps;
  for (std::size_t n : {300 * kib, 100 * kib, 101 * kib, 200 * kib}) {
    gaps.push_back(heap.allocate(n));
    held.push_back(heap.allocate(64));  // separates the gaps
  }
  std::vector<std::byte*> at;
  for (HeapBlock* b : gaps) {
    at.push_back(b->data);
    heap.release(b);
  }
  HeapBlock* const a = heap.allocate(100 * kib);
  CHECK(a->data == at[1]);
  HeapBlock* const b = heap.allocate(100 * kib);
  CHECK(b->data == at[2]);
  HeapBlock* const c = heap.allocate(120 * kib);
  CHECK(c->data == at[3]);
  HeapBlock* const rest = heap.allocate(80 * kib);
  CHECK(rest->data == at[3] + 120 * kib);
  for (HeapBlock* block : {a, b, c, rest}) heap.release(block);
  for (HeapBlock* block : held) heap.release(block);
}

TEST_CASE("a heap grows by the missing chunks and gives back free chunks between used blocks") {
  Heap heap(host_memory());
  HeapBlock* const first = heap.allocate(3 * mib);
  CHECK(heap.reserved() == 4 * mib);
  HeapBlock* const middle = heap.allocate(20 * mib);  // the first mebibyte of `middle` already has memory
  CHECK(heap.reserved() == 24 * mib);
  HeapBlock* const last = heap.allocate(1 * mib);
  CHECK(heap.reserved() == 24 * mib);
  CHECK(heap.system_allocations() == 2);
  std::memset(first->data, 1, first->bytes);
  std::memset(last->data, 2, last->bytes);
  std::memset(middle->data, 3, middle->bytes);

  heap.release(middle);
  heap.trim();
  CHECK(heap.reserved() == 6 * mib);  // 2 chunks of `first` and 1 of `last`
  CHECK(first->data[3 * mib - 1] == std::byte{1});
  CHECK(last->data[0] == std::byte{2});
  HeapBlock* const again = heap.allocate(20 * mib);
  CHECK(heap.reserved() == 24 * mib);
  CHECK(again->data[10 * mib] == std::byte{0});  // fresh memory: the system had taken the old memory back
  for (HeapBlock* b : {first, again, last}) heap.release(b);
}

TEST_CASE("a heap is unchanged after the system refused memory") {
  Heap heap(host_memory());
  HeapBlock* const kept = heap.allocate(3 * mib);
  const std::size_t reserved = heap.reserved();
  const std::uint64_t taken = heap.system_allocations();
  const std::size_t pages = address_space();
  std::memset(kept->data, 5, kept->bytes);

  for (std::size_t n : {std::size_t{1} << 46, std::size_t{1} << 60, ~std::size_t{0}})
    CHECK_THROWS_AS(heap.allocate(n), std::bad_alloc);
  CHECK(address_space() < pages + 100'000);
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_DATA, &limit) == 0);
  const rlimit little{.rlim_cur = 4096, .rlim_max = limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_DATA, &little) == 0);
  bool refused = false;
  try {
    heap.allocate(8 * mib);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
  CHECK(refused);
  CHECK(heap.reserved() == reserved);
  CHECK(heap.system_allocations() == taken);
  CHECK(kept->data[3 * mib - 1] == std::byte{5});

  HeapBlock* const next = heap.allocate(1 * mib);
  CHECK(next->data == kept->data + 3 * mib);
  heap.release(kept);
  heap.release(next);
  heap.trim();
  CHECK(heap.reserved() == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // the sanitizers' shadow memory fills the address space
TEST_CASE("a heap reserves small regions if address space is limited") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
  const rlimit some{.rlim_cur = std::size_t{1} << 40, .rlim_max = limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &some) == 0);
  Heap heap(host_memory());
  std::vector<HeapBlock*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(heap.allocate(20 * mib));  // each block takes a region of 32 MiB
  HeapBlock* const large = heap.allocate(100 * mib);                      // larger than the usual region
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  for (HeapBlock* b : blocks) {
    CHECK(b->region != large->region);
    b->data[0] = b->data[b->bytes - 1] = std::byte{1};
  }
  CHECK(blocks[0]->region != blocks[1]->region);
  CHECK(heap.reserved() == 8 * 20 * mib + 100 * mib);
  for (HeapBlock* b : blocks) heap.release(b);
  heap.release(large);
  heap.trim();
  CHECK(heap.reserved() == 0);
}
#endif
