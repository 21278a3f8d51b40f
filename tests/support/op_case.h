// The list of op cases. Each case has inputs and a function. Every case is tested in f64 on the reference backend
// (value, first and second derivatives), and in f32 on the cpu backend, compared with the reference backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "plumb/plumb.h"

namespace plumb::test {

struct OpCase {
  std::string name;
  std::vector<Shape> shapes;                // shapes of the differentiable inputs, which are drawn from N(0, 1)
  std::function<Tensor(const Tensors&)> f;  // creates constants with the device and dtype of the inputs
  double shift = 0;                         // number added to every input; 2 keeps log and sqrt in their domain
  std::function<Tensor(const Tensors&)>
      composed{};  // definition of a fused op by other ops; the value and the gradient must equal those of `f`
  double f32_tolerance = 2e-5;  // for cpu compared with reference; relative to the largest entry
};

inline constexpr Defaults reference_f64{DType::f64, Device::reference};
inline constexpr Defaults reference_f32{DType::f32, Device::reference};
inline constexpr Defaults cpu_f32{DType::f32, Device::cpu};
inline constexpr Defaults cuda_f32{DType::f32, Device::cuda};
inline constexpr Defaults everywhere[]{reference_f64, reference_f32, cpu_f32};  // without cuda

// The inputs of a case. The numbers are the same for every dtype and device.
Tensors inputs_of(const OpCase& c, Defaults where);

// The difference max |a - b| / max(1, max |b|).
double relative_error(const Tensor& a, const Tensor& b);
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

// The value of f and its gradients for a fixed random cotangent.
Tensors value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

// The second derivatives of f. These are the gradients of <gradients of f, fixed random directions> for a fixed random
// cotangent.
Tensors second_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs);

const std::vector<OpCase>& op_cases();

}  // namespace plumb::test
