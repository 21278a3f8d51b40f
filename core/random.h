// Random numbers as functions, not as a stream: every draw is Philox-4x32-10 of a key and a counter.
//
// The key (64 bits) is a hash of the seed and the path of the module or parameter. Adding a module therefore changes no
// other draw. The counter (4 words) is (step, purpose, a, b). One call gives 128 bits, used as eight 16-bit draws (draw
// i is the i-th half word, low half first) or as four 32-bit words.
//   DropKey, attention dropout:  a = global_sample * heads + head,  b = query << 16 | key / 8; draw key % 8
//     A mask shared by heads uses head = 0; a mask shared by queries uses query = 0. For DropKey's shapes block and
//     cross, the draw of key keys - H W + i W + j says whether cell (i, j) of the patch grid [H, W] is a seed; its
//     threshold is that of the seed rate (core/drop_key.h).
//   drop-path:                   a = global_sample, b = branch; draw 0
//   DropHead:                    a = global_sample, b = head / 8; draw head % 8
//   dropout, init, augmentation: (a, b) = element / 8 as 64 bits, high word first; draw element % 8
//     Init uses the words as two normal or four uniform numbers.
// An entry is dropped if its draw < round(65536 p). The layout and the numbers of the purposes are frozen: the CUDA
// kernels compute the same draws.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

namespace plumb {

// The use of a draw; draws for different purposes are independent.
enum class Purpose : std::uint32_t {
  drop_key = 1,
  drop_path = 2,
  dropout = 3,
  init = 4,
  rounding = 5,
  augmentation = 6,
  drop_head = 7
};

// The 128 bits of one call.
using Draw = std::array<std::uint32_t, 4>;

// Philox-4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") of counter c.
constexpr Draw philox(Draw c, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0], p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
static_assert(philox({0, 0, 0, 0}, 0) == Draw{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
static_assert(philox({~0u, ~0u, ~0u, ~0u}, ~0ull)[3] == 0x6d5451fdu);
static_assert(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x299f31d0a4093822ull)[0] == 0xd16cfe09u);

// The key for a seed and a path: FNV-1a of the path, mixed with the seed by two rounds of splitmix64.
constexpr std::uint64_t random_key(std::uint64_t seed, std::string_view path) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (char c : path) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  for (std::uint64_t add : {seed, std::uint64_t{0}}) {
    h += add + 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
  }
  return h;
}

// The i-th 16-bit draw, 0 <= i < 8.
constexpr std::uint32_t draw16(const Draw& d, int i) {
  return (d[static_cast<std::size_t>(i >> 1)] >> (16 * (i & 1))) & 0xFFFFu;
}

// round(65536 p) for a probability p in [0, 1]. An event happens if its 16-bit draw is below this number.
inline std::uint32_t drop_threshold(double p) { return static_cast<std::uint32_t>(std::lround(65536.0 * p)); }

// round(65536 p) for a probability in [0, 1) that must leave survivors. Throws Error "[op] expected a <what> in [0,
// 1)", or "of at most 1 - 2^-16" if p rounds to 1. A probability below 2^-17 rounds to 0: nothing is dropped.
std::uint32_t survivable_threshold(const char* op, const char* what, double p);

// The draws for the keys 8 * key8 to 8 * key8 + 7 in the row of one query: DropKey and attention dropout.
constexpr Draw attention_draw(std::uint64_t key, std::uint32_t step, Purpose purpose, std::uint32_t sample_head,
                              std::uint32_t query, std::uint32_t key8) {
  return philox({step, static_cast<std::uint32_t>(purpose), sample_head, query << 16 | key8}, key);
}

// The draws for the elements 8 * block to 8 * block + 7 of an array.
constexpr Draw element_draw(std::uint64_t key, std::uint32_t step, Purpose purpose, std::uint64_t block) {
  return philox({step, static_cast<std::uint32_t>(purpose), static_cast<std::uint32_t>(block >> 32),
                 static_cast<std::uint32_t>(block)},
                key);
}

// Turns a word of a draw into a uniform number in [0, 1); its 32 bits are exact in double.
constexpr double uniform(std::uint32_t word) { return word * 0x1p-32; }

// Standard normal numbers for initial values, by the Box-Muller transform (purpose init): element i uses the words
// 2 (i % 2) and 2 (i % 2) + 1 of block i / 2. `attempt` selects further numbers for the same element, which truncated
// draws need. In the counter, `attempt` takes the place of the step, which is otherwise 0.
double normal_draw(std::uint64_t key, std::uint64_t element, std::uint32_t attempt = 0);
// Fills `values` with the normal draws of elements 0, 1, 2, ...
void normal_draws(std::uint64_t key, std::span<double> values);
// The uniform number in [0, 1) of an element (purpose init): word i % 4 of block i / 4 for element i.
inline double uniform_draw(std::uint64_t key, std::uint64_t element) {
  return uniform(element_draw(key, 0, Purpose::init, element / 4)[element % 4]);
}

}  // namespace plumb
