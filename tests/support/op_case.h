// One list of op cases: inputs and a function. Each is run as value, gradient of order one and two in f64 on the
// reference backend, and cpu against reference in f32.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/node.h"

namespace plumb::test {

struct OpCase {
  std::string name;
  std::vector<Shape> shapes;                         // of the differentiable inputs, drawn from N(0, 1)
  std::function<Tensor(const Tensors&)> f;           // makes its constants on the inputs' device in their dtype
  double shift = 0;                                  // added to every input: 2 keeps log and sqrt in their domain
  std::function<Tensor(const Tensors&)> composed{};  // what a fused op means; value and gradient must equal f's
  double f32_tolerance = 2e-5;                       // cpu against reference, relative to the largest entry
};

inline constexpr Defaults reference_f64{DType::f64, Device::reference};
inline constexpr Defaults reference_f32{DType::f32, Device::reference};
inline constexpr Defaults cpu_f32{DType::f32, Device::cpu};
inline constexpr Defaults cuda_f32{DType::f32, Device::cuda};

// The inputs of a case, the same numbers whatever dtype and device.
Tensors inputs_of(const OpCase& c, Defaults where);

// max |a - b| / max(1, max |b|)
double relative_error(const Tensor& a, const Tensor& b);
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

// f's value and gradients under a fixed random cotangent.
Tensors value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

// The gradients of <f's gradients, fixed random directions> under such a cotangent: its second derivatives.
Tensors second_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

const std::vector<OpCase>& op_cases();

}  // namespace plumb::test
