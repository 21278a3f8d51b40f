// A stream of random numbers, for code that needs an unknown number of draws. The stream depends only on seed, purpose,
// epoch and item.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "core/random.h"

namespace plumb::lab {

// Draws random numbers from Philox.
class RandomStream {
 public:
  // `what` names the purpose, such as "data.erase". `item` is the index of the sample or batch. Each item has 2^20
  // calls of Philox.
  RandomStream(std::uint64_t seed, std::string_view what, std::uint32_t epoch, std::int64_t item)
      : key_(random_key(seed, what)), epoch_(epoch), next_(static_cast<std::uint64_t>(item) << 20) {}

  double uniform() { return word() / 4294967296.0; }                                  // uniform in [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }  // uniform in [low, high)
  bool happens(double probability) { return uniform() < probability; }                // true with the given probability
  std::int64_t below(std::int64_t count) {  // a uniform integer in 0..count - 1
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(word()) * static_cast<std::uint64_t>(count) >> 32);
  }
  double normal() {  // standard normal (Box and Muller 1958)
    const double u = (word() + 1.0) / 4294967296.0, v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
  double gamma(double shape) {  // a draw from the gamma distribution of scale 1 (Marsaglia and Tsang 2000)
    if (shape < 1) {
      const double u = (word() + 1.0) / 4294967296.0;
      return gamma(shape + 1) * std::pow(u, 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = normal(), v = std::pow(1 + c * x, 3), u = (word() + 1.0) / 4294967296.0;
      if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }
  double beta(double a, double b) {  // a draw from the beta distribution
    const double x = gamma(a), y = gamma(b);
    return x + y > 0 ? x / (x + y) : happens(0.5) ? 1 : 0;  // if a and b are tiny, x and y may both underflow to 0
  }

 private:
  std::uint32_t word() {
    if (used_ == 4) draw_ = element_draw(key_, epoch_, Purpose::augmentation, next_++), used_ = 0;
    return draw_[used_++];
  }

  std::uint64_t key_;
  std::uint32_t epoch_;
  std::uint64_t next_;
  Draw draw_{};
  std::size_t used_ = 4;
};

}  // namespace plumb::lab
