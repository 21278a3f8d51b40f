#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/random.h"

namespace plumb::nn {
namespace {

double truncated(std::uint64_t key, std::uint64_t element, double std) {
  for (std::uint32_t attempt = 0;; ++attempt)
    if (const double v = std * normal_draw(key, element, attempt); std::abs(v) <= 2) return v;
}

// The numbers fan_in and fan_out of a weight [out, in] or [out, in, kh, kw].
struct Fans {
  double in, out;

  Fans(const Shape& shape, const std::string& init, const std::string& name) {
    check(shape.rank() == 2 || shape.rank() == 4,
          "[init] expected a weight [out, in] or [out, in, kh, kw] for {}, got {} {}", init, name, shape);
    const auto taps = static_cast<double>(shape.rank() == 4 ? shape[2] * shape[3] : 1);
    in = taps * static_cast<double>(shape[1]);
    out = taps * static_cast<double>(shape[0]);
  }
};

}  // namespace

Init Init::constant(double value) {
  check(std::isfinite(value), "[init] expected a finite constant, got {}", value);
  Init i;
  i.parameter_ = value;
  return i;
}

Init Init::truncated_normal(double std) {
  check(std > 0 && std <= 1,
        "[init] expected a standard deviation in (0, 1] for the normal distribution cut at 2, got {}", std);
  Init i;
  i.kind_ = Kind::truncated_normal;
  i.parameter_ = std;
  return i;
}

Init Init::xavier_uniform(int parts) {
  check(parts >= 1, "[init] expected at least one part, got {}", parts);
  Init i;
  i.kind_ = Kind::xavier_uniform;
  i.parameter_ = parts;
  return i;
}

Init Init::xavier_normal(double gain, int parts) {
  check(gain > 0 && parts >= 1, "[init] expected a gain above 0 and at least one part, got {} and {}", gain, parts);
  Init i;
  i.kind_ = Kind::xavier_normal;
  i.parameter_ = parts;
  i.factor_ = gain;
  return i;
}

Init Init::normal(double std) {
  check(std > 0 && std::isfinite(std), "[init] expected a finite standard deviation above 0, got {}", std);
  Init i;
  i.kind_ = Kind::normal;
  i.parameter_ = std;
  return i;
}

Init Init::uniform(double bound) {
  check(bound > 0 && std::isfinite(bound), "[init] expected a finite bound above 0, got {}", bound);
  Init i;
  i.kind_ = Kind::uniform;
  i.parameter_ = bound;
  return i;
}

Init Init::fan_in_uniform() {
  Init i;
  i.kind_ = Kind::fan_in_uniform;
  return i;
}

Init Init::he_normal() {
  Init i;
  i.kind_ = Kind::he_normal;
  return i;
}

Init Init::values(std::vector<double> values) {
  Init i;
  i.kind_ = Kind::values;
  i.values_ = std::move(values);
  return i;
}

Init Init::scaled(double factor) const {
  check(std::isfinite(factor), "[init] expected a finite factor, got {}", factor);
  Init i = *this;
  i.factor_ *= factor;
  return i;
}

Init Init::scaled_part(std::size_t part, std::size_t parts, double factor) const {
  check(part < parts && (part_factors_.empty() || part_factors_.size() == parts),
        "[init] expected a part below {} and the same number of parts in every call, got part {} after {} parts", parts,
        part, part_factors_.size());
  Init i = *this;
  i.part_factors_.resize(parts, 1.0);
  i.part_factors_[part] *= factor;
  return i;
}

void Init::fill(const Array& parameter, std::uint64_t seed, const std::string& name) const {
  const std::uint64_t key = random_key(seed, name);
  const auto value = [&]() -> std::function<double(std::uint64_t)> {
    switch (kind_) {
      case Kind::constant:
        return [this](std::uint64_t) { return parameter_; };
      case Kind::truncated_normal:
        return [this, key](std::uint64_t i) { return truncated(key, i, parameter_); };
      case Kind::normal:
        return [this, key](std::uint64_t i) { return parameter_ * normal_draw(key, i); };
      case Kind::uniform:
        return [this, key](std::uint64_t i) { return parameter_ * (2 * uniform_draw(key, i) - 1); };
      case Kind::xavier_uniform:
      case Kind::xavier_normal:
      case Kind::fan_in_uniform: {
        const Fans fan(parameter.shape(), description(), name);
        if (kind_ == Kind::xavier_normal)
          return [key, std = std::sqrt(2 / (fan.in + fan.out / parameter_))](std::uint64_t i) {
            return std * normal_draw(key, i);
          };
        const double bound =
            kind_ == Kind::fan_in_uniform ? 1 / std::sqrt(fan.in) : std::sqrt(6 / (fan.in + fan.out / parameter_));
        return [key, bound](std::uint64_t i) { return bound * (2 * uniform_draw(key, i) - 1); };
      }
      case Kind::he_normal:
        return [key, std = std::sqrt(2 / Fans(parameter.shape(), description(), name).out)](std::uint64_t i) {
          return std * normal_draw(key, i);
        };
      case Kind::values:
        break;
    }
    check(static_cast<std::int64_t>(values_.size()) == parameter.numel(), "[init] expected {} values for {} {}, got {}",
          parameter.numel(), name, parameter.shape(), values_.size());
    return [this](std::uint64_t i) { return values_[i]; };
  }();
  const std::size_t parts = std::max<std::size_t>(part_factors_.size(), 1);
  check(parameter.shape().rank() == 0 || parameter.dim(0) % static_cast<std::int64_t>(parts) == 0,
        "[init] expected a number of rows divisible by {} for {}, got {}", parts, name, parameter.shape());
  const auto part_size = std::max<std::uint64_t>(static_cast<std::uint64_t>(parameter.numel()) / parts, 1);
  const Out host(in_host_memory(parameter.device()) ? parameter
                                                    : Array(parameter.shape(), parameter.dtype(), Device::cpu));
  dispatch_float(parameter.dtype(), "init", [&]<class T>() {
    T* const values = host.mutable_data<T>();
    for (std::int64_t e = 0; e < parameter.numel(); ++e) {
      const auto i = static_cast<std::uint64_t>(e);
      const double factor = part_factors_.empty() ? factor_ : factor_ * part_factors_[i / part_size];
      values[e] = factor == 0 ? T{0} : static_cast<T>(factor * value(i));
    }
  });
  copy_into(host, parameter);
}

bool Init::is_zero() const {
  const bool no_part = !part_factors_.empty() && std::ranges::all_of(part_factors_, [](double f) { return f == 0; });
  const bool no_value = kind_ == Kind::values && std::ranges::all_of(values_, [](double v) { return v == 0; });
  return factor_ == 0 || no_part || no_value || (kind_ == Kind::constant && parameter_ == 0);
}

bool Init::draws() const { return kind_ != Kind::constant && kind_ != Kind::values && !is_zero(); }

namespace {

// Returns a text such as "0.1" if all values are equal, "(1, 0, 0, 0)" for up to 8 values, and "16 values" for more
// values.
std::string short_list(const std::vector<double>& values) {
  if (std::ranges::adjacent_find(values, std::not_equal_to{}) == values.end())
    return fmt::format("{:g}", values.empty() ? 0 : values[0]);
  return values.size() <= 8 ? fmt::format("({:g})", fmt::join(values, ", ")) : fmt::format("{} values", values.size());
}

}  // namespace

std::string Init::description() const {
  if (is_zero()) return "0";
  const std::string base =
      kind_ == Kind::constant           ? fmt::format("{:g}", parameter_)
      : kind_ == Kind::truncated_normal ? fmt::format("truncated_normal({:g})", parameter_)
      : kind_ == Kind::fan_in_uniform   ? "fan_in_uniform"
      : kind_ == Kind::xavier_normal
          ? (parameter_ == 1 ? "xavier_normal" : fmt::format("xavier_normal({:g} parts)", parameter_))
      : kind_ == Kind::normal    ? fmt::format("normal({:g})", parameter_)
      : kind_ == Kind::uniform   ? fmt::format("uniform({:g})", parameter_)
      : kind_ == Kind::he_normal ? "he_normal"
      : kind_ == Kind::xavier_uniform
          ? (parameter_ == 1 ? "xavier_uniform" : fmt::format("xavier_uniform({:g} parts)", parameter_))
          : short_list(values_);
  std::string text = factor_ == 1 ? base : fmt::format("{} * {:.4g}", base, factor_);
  if (!part_factors_.empty()) {
    for (std::size_t i = 0; i < part_factors_.size(); ++i)
      if (part_factors_[i] != 1)
        text += fmt::format(", part {} of {} * {:.4g}", i + 1, part_factors_.size(), part_factors_[i]);
  }
  return text;
}

const char* description(Base base) {
  constexpr const char* names[] = {"truncated normal, std 0.02", "Xavier uniform; q, k, v separate",
                                   "Xavier normal; q, k, v separate", "Xavier uniform of the packed qkv",
                                   "truncated normal, std 0.02 x sqrt(384 / dim)"};
  return names[static_cast<int>(base)];
}

Init weight_init(Base base, std::int64_t dim, int packed_parts) {
  if (base == Base::truncated_normal) return Init::truncated_normal(0.02);
  if (base == Base::scaled_normal) return Init::truncated_normal(0.02 * std::sqrt(384.0 / static_cast<double>(dim)));
  if (base == Base::xavier_normal) return Init::xavier_normal(1, packed_parts);
  return Init::xavier_uniform(base == Base::xavier ? packed_parts : 1);
}

}  // namespace plumb::nn
