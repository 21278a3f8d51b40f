// The random draws of core/random.h, for several counters at a time.
#if defined(PLUMB_CPU_PHILOX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_PHILOX_INL
#undef PLUMB_CPU_PHILOX_INL
#else
#define PLUMB_CPU_PHILOX_INL
#endif

#include "backends/cpu/simd-inl.h"
#include "core/random.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// For each j < n: sets bit i of dropped[j] if draw i of the counter (step, purpose, a, b[j]) is below the threshold.
// Reads b and writes `dropped` up to the next multiple of 8.
//
// A counter word is stored in the low half of a 64-bit lane, as the multiplication requires. The high halves hold
// arbitrary bits that no product reads. The lanes are ordered such that one comparison of 16-bit lanes yields the bits
// in the order of the counters.
HWY_INLINE void draws_below(std::uint64_t key, std::uint32_t step, Purpose purpose, std::uint32_t a,
                            const std::uint32_t* b, std::int64_t n, std::uint32_t threshold, std::uint8_t* dropped) {
  if (threshold > 0xFFFF) {
    std::memset(dropped, 0xFF, static_cast<std::size_t>((n + 7) / 8 * 8));
    return;
  }
  const hn::ScalableTag<std::uint64_t> u64;
  const hn::Repartition<std::uint32_t, decltype(u64)> u32;
  const hn::Repartition<std::uint16_t, decltype(u64)> u16;
  const hn::Rebind<std::uint32_t, decltype(u64)> half;
  constexpr std::int64_t L = HWY_LANES(std::uint64_t);
  HWY_ALIGN std::uint64_t order[L];  // 0, L/2, 1, L/2 + 1, ...
  for (std::uint64_t i = 0; i < L; ++i) order[i] = i / 2 + i % 2 * (L / 2);
  const auto lanes = hn::IndicesFromVec(u64, hn::Load(u64, order));
  const auto m0 = hn::Set(u32, 0xD2511F53u), m1 = hn::Set(u32, 0xCD9E8D57u);
  const auto below = hn::Set(u16, static_cast<std::uint16_t>(threshold));
  const auto low = hn::Set(u64, 0xFFFFFFFFull);

  for (std::int64_t j = 0; j < n; j += L) {
    auto c0 = hn::Set(u64, step), c1 = hn::Set(u64, static_cast<std::uint32_t>(purpose)), c2 = hn::Set(u64, a);
    auto c3 = hn::TableLookupLanes(hn::PromoteTo(u64, hn::LoadU(half, b + j)), lanes);
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = hn::MulEven(hn::BitCast(u32, c0), m0), p1 = hn::MulEven(hn::BitCast(u32, c2), m1);
      c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c1, hn::Set(u64, k0)));
      c1 = p1;
      c2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c3, hn::Set(u64, k1)));
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto front = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1)),
               back = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    std::uint8_t bits[16];  // StoreMaskBits may write more bytes than the mask has
    hn::StoreMaskBits(u16, hn::Lt(hn::BitCast(u16, hn::InterleaveLower(u64, front, back)), below), bits);
    std::memcpy(dropped + j, bits, static_cast<std::size_t>(L / 2));
    hn::StoreMaskBits(u16, hn::Lt(hn::BitCast(u16, hn::InterleaveUpper(u64, front, back)), below), bits);
    std::memcpy(dropped + j + L / 2, bits, static_cast<std::size_t>(L / 2));
  }
}

// Returns the mask of the lanes first, first + 1, ... of a row of bits. 8 bytes must be readable from the byte of bit
// `first` on.
HWY_INLINE Mask lanes_of_bits(const std::uint8_t* bits, std::int64_t first) {
  std::uint64_t word;
  std::memcpy(&word, bits + first / 8, sizeof word);
  word >>= first % 8;
  return hn::LoadMaskBits(f32, reinterpret_cast<const std::uint8_t*>(&word));
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
