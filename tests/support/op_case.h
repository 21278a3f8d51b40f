// One list of op cases, each with inputs and a function. Every case is tested in f64 on the reference backend (value,
// first and second derivatives) and in f32 on cpu against reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/node.h"

namespace plumb::test {

struct OpCase {
  std::string name;
  std::vector<Shape> shapes;                // shapes of the differentiable inputs, drawn from N(0, 1)
  std::function<Tensor(const Tensors&)> f;  // creates its constants with the inputs' device and dtype
  double shift = 0;                         // added to every input; 2 keeps log and sqrt in their domain
  std::function<Tensor(const Tensors&)>
      composed{};               // definition of a fused op by other ops; value and gradient must equal f's
  double f32_tolerance = 2e-5;  // cpu against reference, relative to the largest entry
};

inline constexpr Defaults reference_f64{DType::f64, Device::reference};
inline constexpr Defaults reference_f32{DType::f32, Device::reference};
inline constexpr Defaults cpu_f32{DType::f32, Device::cpu};
inline constexpr Defaults cuda_f32{DType::f32, Device::cuda};

// The inputs of a case: the same numbers for every dtype and device.
Tensors inputs_of(const OpCase& c, Defaults where);

// max |a - b| / max(1, max |b|)
double relative_error(const Tensor& a, const Tensor& b);
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

// The value of f and its gradients for a fixed random cotangent.
Tensors value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

// Second derivatives: the gradients of <gradients of f, fixed random directions> for a fixed random cotangent.
Tensors second_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

const std::vector<OpCase>& op_cases();

}  // namespace plumb::test
