// Initial values, declared beside the parameter and filled in by one pass over the model (initialize in nn/module.h).
#pragma once

#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace plumb::nn {

// How a parameter starts. Weights are [out, in], fan_in = in and fan_out = out, or [out, in, kh, kw], where both count
// kh kw times; draws are a function of (seed, parameter name, element) alone.
class Init {
 public:
  static Init constant(double value);
  // Normal, redrawn outside [-2, 2] absolute, as timm has it: for std 0.02 in effect the plain normal.
  static Init truncated_normal(double std);
  // Glorot, Bengio 2010: U(-b, b), b = sqrt(6 / (fan_in + fan_out)). A packed projection of `parts` blocks of rows
  // counts the fan_out of one block (q, k, v apart) unless parts is 1.
  static Init xavier_uniform(int parts = 1);
  // Its normal form: N(0, std), std = gain sqrt(2 / (fan_in + fan_out)).
  static Init xavier_normal(double gain = 1, int parts = 1);
  // U(-b, b), b = 1 / sqrt(fan_in): the default of PyTorch's convolutions and linears.
  static Init fan_in_uniform();
  // N(0, 2 / fan_out), He et al. 2015 (PyTorch's kaiming_normal_, mode fan_out): keeps the size of gradients through
  // convolutions and ReLUs.
  static Init he_normal();
  static Init uniform(double bound);               // U(-bound, bound)
  static Init values(std::vector<double> values);  // these, in row-major order

  // The same, multiplied: what residual methods do to the weights of their branches.
  Init scaled(double factor) const;
  // The same for part `part` of `parts` equal blocks of rows: the values of a packed q, k, v are part 2 of 3.
  Init scaled_part(std::size_t part, std::size_t parts, double factor) const;

  void fill(const Array& parameter, std::uint64_t seed, const std::string& name) const;
  bool is_zero() const;             // every value is 0 by declaration
  bool draws() const;               // values depend on seed and name
  std::string description() const;  // "truncated_normal(0.02) * 0.1021"

 private:
  enum class Kind {
    constant,
    truncated_normal,
    xavier_uniform,
    xavier_normal,
    fan_in_uniform,
    uniform,
    he_normal,
    values
  };
  Kind kind_ = Kind::constant;
  double parameter_ = 0;  // the constant, the deviation, the bound, or the number of parts
  double factor_ = 1;
  std::vector<double> part_factors_;  // empty: 1 everywhere
  std::vector<double> values_;
};

}  // namespace plumb::nn
