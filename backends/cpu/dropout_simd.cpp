// Dropout. The mask is never stored. Each kernel call draws the mask again.
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dropout_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Computes y = x / (1 - p) for kept elements and y = 0 for dropped elements, for n elements. `element` is the index of
// the first element in its array.
void DropoutRun(const float* x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t element,
                std::int64_t n, float* y) {
  constexpr std::int64_t chunk = 64;  // number of draw blocks per chunk; a draw block covers 8 elements
  const V scale = set(static_cast<float>(1 / (1 - threshold / 65536.0)));
  std::uint32_t counters[chunk];
  std::uint8_t dropped[chunk + 8];
  while (n > 0) {
    const std::uint64_t block = element / 8, high = block >> 32;
    const auto skipped = static_cast<std::int64_t>(element % 8);
    // All draw blocks of a chunk must have the same high word of the counter.
    const std::int64_t blocks =
        std::min<std::int64_t>({chunk, (skipped + n + 7) / 8,
                                static_cast<std::int64_t>(std::min(((high + 1) << 32) - block, std::uint64_t{chunk}))});
    for (std::int64_t j = 0; j < chunk; ++j)
      counters[j] = static_cast<std::uint32_t>(block + static_cast<std::uint64_t>(j));
    draws_below(key, step, Purpose::dropout, static_cast<std::uint32_t>(high), counters, blocks, threshold, dropped);
    const std::int64_t count = std::min(n, blocks * 8 - skipped);
    for_lanes(count, [&](std::int64_t i, auto part) HWY_ATTR {
      store(hn::IfThenZeroElse(lanes_of_bits(dropped, skipped + i), hn::Mul(load(x + i, part), scale)), y + i, part);
    });
    x += count, y += count, n -= count;
    element += static_cast<std::uint64_t>(count);
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(DropoutRun);

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold,
             std::uint64_t first_element, const Out& y) {
  const float* from = x.data<float>();
  float* to = y.mutable_data<float>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(DropoutRun)
    (from + begin, key, step, threshold, first_element + static_cast<std::uint64_t>(begin), end - begin, to + begin);
  });
}

}  // namespace plumb::cpu
#endif
