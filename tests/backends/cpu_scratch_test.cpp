// Tests of the temporary memory for kernels.
#include "backends/cpu/scratch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "tests/support/catch.h"

using namespace plumb;

TEST_CASE("pieces of scratch memory are aligned and do not overlap and may be freed in any order") {
  const auto fill = [](const cpu::Scratch& s, std::int64_t n, float value) {
    REQUIRE(reinterpret_cast<std::uintptr_t>(s.data()) % 64 == 0);
    std::fill_n(s.data(), n, value);
  };
  const auto holds = [](const cpu::Scratch& s, std::int64_t n, float value) {
    return std::all_of(s.data(), s.data() + n, [&](float x) { return x == value; });
  };
  constexpr std::int64_t large = 1 << 20;  // 4 MiB, which is more than the scratch stack of a thread
  auto first = std::make_unique<cpu::Scratch>(5);
  auto second = std::make_unique<cpu::Scratch>(100'000);
  auto third = std::make_unique<cpu::Scratch>(100'000);
  const cpu::Scratch beyond(large), none(0);
  fill(*first, 5, 1), fill(*second, 100'000, 2), fill(*third, 100'000, 3), fill(beyond, large, 4);
  REQUIRE((holds(*first, 5, 1) && holds(*second, 100'000, 2) && holds(*third, 100'000, 3) && holds(beyond, large, 4)));
  first.reset();  // `first` is not the last piece
  second.reset();
  const cpu::Scratch fourth(150'000);
  fill(fourth, 150'000, 5);
  REQUIRE((holds(*third, 100'000, 3) && holds(fourth, 150'000, 5)));
}

#ifndef PLUMB_ADDRESS_SANITIZER  // with the address sanitizer, each piece comes from the system
TEST_CASE("scratch memory has the same address in every call") {
  const auto address = [] { return cpu::Scratch(1000).data(); };
  const float* const first = address();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 10; ++i) REQUIRE(address() == first);
  REQUIRE(memory_stats().allocations == before.allocations);
}
#else
TEST_CASE("unwritten scratch memory holds NaN") {
  const cpu::Scratch s(7);
  CHECK(std::all_of(s.data(), s.data() + 7, [](float x) { return std::isnan(x); }));
}
#endif
