#include "core/storage.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "core/array.h"
#include "core/memory.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("storages are aligned, and their sizes count in units of 64 bytes") {
  const MemoryStats start = memory_stats();
  for (std::size_t n : {0u, 1u, 64u, 65u, 4099u, 65535u, 65536u, 3194880u}) {
    const Storage s(n);
    CHECK(reinterpret_cast<std::uintptr_t>(s.data) % 64 == 0);
    CHECK(s.bytes == n);
    std::memset(s.data, 1, n);
    CHECK(memory_stats().in_use - start.in_use == (n ? (n + 63) / 64 * 64 : 64));
  }
  CHECK(memory_stats().in_use == start.in_use);
  CHECK(memory_stats().allocations == start.allocations + 8);
}

TEST_CASE("the peak of memory use counts all storages together") {
  reset_peak_memory();
  const std::size_t start = memory_stats().in_use;
  {
    const Storage small(6400), large(640'000);
    const Storage another(64'000);
  }
  CHECK(memory_stats().peak == start + 6400 + 640'000 + 64'000);
  reset_peak_memory();
  CHECK(memory_stats().peak == start);
}

TEST_CASE("a storage larger than memory throws and leaves the counts unchanged") {
  const MemoryStats start = memory_stats();
  CHECK_THROWS_AS(Storage(std::size_t{1} << 60), std::bad_alloc);
  CHECK_THROWS_AS(Storage(~std::size_t{0}), OutOfMemory);
  const auto asked = [](std::size_t bytes) {
    return fmt::format("out of memory on the host: asked for {} bytes (", bytes);
  };
  for (const Device device : {Device::cpu, Device::reference}) {
    CHECK_THAT(error_of([&] { Array({1ll << 58}, DType::f64, device); }),
               contains(asked(std::size_t{1} << 61)) && contains(" MiB of the host are free"));
    CHECK_THAT(error_of([&] { Array({1ll << 50}, DType::u8, device); }), contains(asked(std::size_t{1} << 50)));
  }
  const MemoryStats after = memory_stats();
  CHECK(after.in_use == start.in_use);
  CHECK(after.peak == start.peak);
  CHECK(after.reserved == start.reserved);
  CHECK(after.allocations == start.allocations);
}

TEST_CASE("storages of different threads are separate") {
  const std::size_t start = memory_stats().in_use;
  std::vector<int> spoiled(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < spoiled.size(); ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::unique_ptr<Storage>> live(16);
        for (std::size_t i = 0; i < 4000; ++i) {
          auto& s = live[i * 7 % 16];
          const auto mark = static_cast<unsigned char>(16 * t + i * 7 % 16);
          if (s)
            spoiled[t] += static_cast<unsigned char*>(s->data)[s->bytes - 1] != mark ||
                          static_cast<unsigned char*>(s->data)[0] != mark;
          s = nullptr;
          s = std::make_unique<Storage>(1 + i * 7919 % 100'000);
          std::memset(s->data, mark, s->bytes);
        }
      });
    }
  }
  CHECK(spoiled == std::vector<int>(4, 0));
  CHECK(memory_stats().in_use == start);
}

#ifndef PLUMB_ADDRESS_SANITIZER  // AddressSanitizer puts red zones around every buffer

TEST_CASE("freed buffers are reused, counted, and given back on request") {
  for (std::size_t size : {50'000u, 3'000'000u}) {
    INFO(size);
    release_cached_memory();
    const MemoryStats start = memory_stats();
    std::vector<std::unique_ptr<Storage>> storages(100);
    const auto make = [&] {
      for (auto& s : storages) s = std::make_unique<Storage>(size);
      storages = std::vector<std::unique_ptr<Storage>>(100);
    };
    make();
    const MemoryStats cached = memory_stats();
    CHECK(cached.in_use == start.in_use);
    CHECK(cached.reserved > start.reserved + 90 * size);
    CHECK(cached.reserved < start.reserved + 102 * size + (4 << 20));
    CHECK(cached.system_allocations > start.system_allocations);
    for (int i = 0; i < 10; ++i) make();
    CHECK(memory_stats().reserved == cached.reserved);
    CHECK(memory_stats().system_allocations == cached.system_allocations);
    CHECK(memory_stats().allocations == cached.allocations + 1000);
    release_cached_memory();
    CHECK(memory_stats().reserved == start.reserved);
  }
}

namespace {

// Imitates the memory use of training: activations of about `width` bytes are kept in the forward pass and freed in the
// backward pass, with short-lived scratch buffers in between, while small storages (statistics, logs) come and stay.
struct Pattern {
  std::size_t width, depth;
  std::mt19937 random{3};
  std::vector<std::unique_ptr<Storage>> small = std::vector<std::unique_ptr<Storage>>(3000);

  void replace_some() {
    for (int k = 0; k < 10; ++k) {
      auto& s = small[random() % small.size()];
      s = nullptr;
      s = std::make_unique<Storage>(64 + random() % 20'000);
    }
  }

  void step() {
    std::vector<std::unique_ptr<Storage>> saved;
    for (std::size_t i = 0; i < depth; ++i) {
      for (std::size_t n : {width, 3 * width, std::size_t{16'640}}) saved.push_back(std::make_unique<Storage>(n));
      const Storage scratch(width / 3);
      replace_some();
    }
    while (!saved.empty()) {
      const Storage gradient(width);
      saved.pop_back();
      if (saved.size() % 4 == 0) replace_some();
    }
  }
};

}  // namespace

TEST_CASE("memory does not grow while patterns of different shapes alternate") {
  release_cached_memory();
  reset_peak_memory();
  const MemoryStats start = memory_stats();
  Pattern narrow{.width = 2'100'000, .depth = 20}, wide{.width = 3'194'880, .depth = 20};
  std::size_t early = 0;
  for (int trial = 0; trial < 20; ++trial) {
    for (int step = 0; step < 5; ++step) (trial % 2 ? wide : narrow).step();
    if (trial == 9) early = memory_stats().reserved;
  }
  const MemoryStats end = memory_stats();
  CHECK(static_cast<double>(end.reserved - start.reserved) <
        1.05 * static_cast<double>(end.peak - start.in_use) + (4 << 20));
  CHECK(end.reserved <= early + (8 << 20));  // most small storages already existed at `early`
}

#endif

TEST_CASE("devices that share a memory report the same memory use") {
  CHECK(&memory_of(Device::cpu) == &memory_of(Device::reference));
  const Storage reference(6400, Device::reference);
  const std::size_t before = memory_stats().in_use;
  const Storage cpu(6400, Device::cpu);
  CHECK(reference.device == Device::reference);
  CHECK(memory_stats(Device::reference).in_use == before + 6400);
  // The memory executes copies in the order of the calls.
  Memory& memory = memory_of(Device::cpu);
  const float values[] = {1, 2, 3};
  float back[3] = {};
  memory.upload(values, reference.data, sizeof values);
  memory.copy(reference.data, cpu.data, sizeof values);
  memory.download(cpu.data, back, sizeof values);
  memory.synchronize();
  CHECK(std::memcmp(values, back, sizeof values) == 0);
}
