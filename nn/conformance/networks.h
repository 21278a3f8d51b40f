// The small networks on which check_method() checks a method, and comparisons of their results.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nn/gates/method.h"
#include "nn/models/vit.h"

namespace plumb::nn::rules {

constexpr std::int64_t dim = 8, heads = 2, classes = 5, depth = 3;
constexpr Defaults f64_reference{DType::f64, Device::reference}, f64_cpu{DType::f64, Device::cpu},
    f32_cpu{DType::f32, Device::cpu};

// The branches of a transformer block: attention and MLP.
std::vector<BranchChoice> junctions();
// A stack of blocks with initial parameters, and a ViT of two blocks for images().
std::unique_ptr<Stack> make_stack(const MethodChoice& method, std::int64_t blocks = depth,
                                  const std::vector<BranchChoice>& list = junctions());
std::unique_ptr<ViT> make_vit(const MethodChoice& method, std::uint64_t seed = 0);

// Inputs: [2, 5, dim] for a stack; [3, 1, 8, 8] and its labels [3] for a ViT.
Tensor stream();
Tensor images();
Tensor labels();

// Moves every trained parameter away from its initial value, so that no 0 and no 1 hides a term of a gradient.
void shake(const Module& module);

// A stack with parameters that are moved away from their initial values, an input x of the stack, and the variables for
// gradients: the parameters, then x.
struct Shaken {
  explicit Shaken(const MethodChoice& method, std::int64_t blocks = depth) : Shaken(make_stack(method, blocks)) {}
  explicit Shaken(std::unique_ptr<Stack> of, StackInputs more = {});
  // Computes the stack on x. Statistics and counters start with the same values in each call, because a gate may count
  // its passes.
  Tensor output() const;

  std::unique_ptr<Stack> stack;
  StackInputs inputs;
  std::vector<std::pair<Tensor, std::vector<double>>> measured;
  Tensor x = variable(stream());
  Tensors variables;
};

// Returns the larger of two values; NaN if a value is NaN.
double worse(double a, double b);
// Returns the largest absolute value.
double largest(const Tensor& x);
// Returns the largest difference between corresponding elements, divided by the largest element of b.
double largest_difference(const Tensors& a, const Tensors& b);
// The share of the elements of `stream` that do not change when `added` is added to them and both terms and the sum are
// rounded to bf16. Elements with an `added` of 0 do not count as unchanged. Throws Error if the sizes differ or are 0.
double unchanged_in_bf16(const std::vector<double>& stream, const std::vector<double>& added);

}  // namespace plumb::nn::rules
