// Initial values of parameters. A module declares an Init with each parameter; initialize() (nn/module.h) fills the
// parameters.
#pragma once

#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "core/enum_names.h"

namespace plumb::nn {

// The distribution of a parameter's initial values. Weights are [out, in], with fan_in = in and fan_out = out, or [out,
// in, kh, kw], with fan_in = in kh kw and fan_out = out kh kw. A drawn value depends only on the seed, the parameter
// name and the element index. All functions throw Error for arguments outside their stated bounds.
class Init {
 public:
  // Every value is `value`, which must be finite.
  static Init constant(double value);
  // N(0, std), drawn again while the value is outside [-2, 2], as in timm. For std 0.02, the result is practically the
  // plain normal distribution. std must be in (0, 1].
  static Init truncated_normal(double std);
  // U(-b, b) with b = sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010). For a projection that packs `parts` matrices
  // as blocks of rows (q, k and v), fan_out is the number of rows of one block.
  static Init xavier_uniform(int parts = 1);
  // The normal distribution N(0, std) with std = gain sqrt(2 / (fan_in + fan_out)). If gain is 1, the variance is that
  // of xavier_uniform(). gain must be above 0.
  static Init xavier_normal(double gain = 1, int parts = 1);
  // U(-b, b) with b = 1 / sqrt(fan_in), PyTorch's default for convolutions and linear layers.
  static Init fan_in_uniform();
  // The normal distribution with mean 0 and variance 2 / fan_out (He et al. 2015; PyTorch's kaiming_normal_ with mode
  // fan_out). With this distribution, gradients keep their size through convolutions and ReLUs.
  static Init he_normal();
  // The normal distribution N(0, std). std must be finite and above 0.
  static Init normal(double std);
  // U(-bound, bound). bound must be finite and above 0.
  static Init uniform(double bound);
  // The values are given, in row-major order.
  static Init values(std::vector<double> values);

  // Returns this distribution with all values multiplied by `factor`. Residual methods use scaled() for the weights of
  // their branches.
  Init scaled(double factor) const;
  // Returns this distribution with only one of `parts` equal blocks of rows multiplied by `factor`. `part` is the index
  // of this block, from 0: v is part 2 of 3 in a packed weight of q, k and v.
  Init scaled_part(std::size_t part, std::size_t parts, double factor) const;

  // Fills a parameter with its values for this seed and full name. Throws Error if the distribution depends on fan_in
  // or fan_out and the rank of the weight is not 2 or 4. For values(), throws Error if the number of values is not the
  // size of the parameter.
  void fill(const Array& parameter, std::uint64_t seed, const std::string& name) const;
  // Returns whether the declaration makes every value 0.
  bool is_zero() const;
  // Returns whether the values depend on the seed and the name.
  bool draws() const;
  // Returns the distribution as text for logs, such as "truncated_normal(0.02) * 0.1021".
  std::string description() const;

 private:
  enum class Kind {
    constant,
    truncated_normal,
    xavier_uniform,
    xavier_normal,
    fan_in_uniform,
    normal,
    uniform,
    he_normal,
    values
  };
  Kind kind_ = Kind::constant;
  double parameter_ = 0;  // by kind: the constant, the standard deviation, the bound, or the number of parts
  double factor_ = 1;
  std::vector<double> part_factors_;  // if empty, every part has factor 1
  std::vector<double> values_;
};

// The distribution of the initial weights, before a method scales these weights. The patch embedding does not depend on
// Base: its init is always fan_in_uniform.
enum class Base {
  truncated_normal,  // truncated normal, std 0.02, as in ViT and DeiT; the default for all methods
  xavier,            // Glorot uniform; q, k and v count as three matrices
  xavier_normal,     // Glorot normal; q, k and v count as three matrices
  xavier_packed,     // Glorot uniform; q, k and v count as one packed matrix
  scaled_normal      // truncated normal, std 0.02 sqrt(384 / dim); equals truncated_normal at width 384 (DeiT-S)
};
constexpr auto names_of(Base) {
  return std::array{"truncated_normal", "xavier", "xavier_normal", "xavier_packed", "scaled_normal"};
}
// Returns a description of the distribution, such as "truncated normal, std 0.02".
const char* description(Base base);
// Returns the Init of a weight with this distribution. `dim` is the width of the stream. `packed_parts` is the number
// of matrices packed in the weight (3 for qkv).
Init weight_init(Base base, std::int64_t dim, int packed_parts = 1);

}  // namespace plumb::nn
