// Hashes that distinguish settings, data and code. The hashes are the same on every machine, and are not cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace plumb::lab {

// A 64-bit hash of all added parts. The hash depends on the order of the parts and on the boundaries between parts.
// Each group of eight bytes is multiplied to 128 bits and folded to 64 bits.
class Hash {
 public:
  // Adds one part.
  void add(std::string_view bytes) {
    mix(bytes.size());
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      std::uint64_t w;
      std::memcpy(&w, bytes.data(), 8);
      mix(w);
    }
    std::uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());  // an empty view may have a null data()
    mix(rest);
  }
  std::string text() const;  // the hash as 16 hex digits

 private:
  void mix(std::uint64_t w) {
    const unsigned __int128 product = static_cast<unsigned __int128>(state_ ^ w) * 0x9e3779b97f4a7c15ull;
    state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^
             (w * 0xbf58476d1ce4e5b9ull + 0x94d049bb133111ebull);
  }
  std::uint64_t state_ = 0x6a09e667f3bcc909ull;
};

// The hash of one text, as 16 hex digits.
std::string hash_of(std::string_view text);

}  // namespace plumb::lab
