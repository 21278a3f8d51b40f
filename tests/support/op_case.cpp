#include "tests/support/op_case.h"

#include <algorithm>
#include <cmath>

namespace plumb::test {

Tensors inputs_of(const OpCase& c, Defaults where) {
  Tensors inputs;
  for (std::size_t i = 0; i < c.shapes.size(); ++i) inputs.push_back(random_normal(c.shapes[i], 1, fmt::format("{}.{}", c.name, i), where) + c.shift);
  return inputs;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!(std::abs(a.at(i) - b[i]) <= difference)) difference = std::abs(a[i] - b[i]);  // a NaN wins
    size = std::max(size, std::abs(b[i]));
  }
  return a.size() == b.size() ? difference / size : HUGE_VAL;
}

double relative_error(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() ? relative_error(a.values(), b.values()) : HUGE_VAL; }

Tensors value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(variable(x));
  const Tensor y = f(leaves);
  Tensors result{y.detach()};
  for (const Tensor& g : grad(y, leaves, {.cotangent = random_normal(y.shape(), 3, "cotangent", {y.dtype(), y.device()})})) result.push_back(g);
  return result;
}

namespace {

// A constant of the inputs' dtype and device.
Tensor constant(const Tensors& in, const Shape& shape, const char* name) { return random_normal(shape, 5, name, {in[0].dtype(), in[0].device()}); }

Tensor mask(const Tensors& in, const Shape& shape) {
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = (i * 7 + i / 3) % 5 < 3;
  return Tensor(array_from(bits, shape, in[0].device()));
}

Tensor labels(const Tensors& in, std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < rows; ++i) values.push_back((i * 5 + 2) % classes);
  return integers(values, {rows}, in[0].device());
}

std::vector<OpCase> elementwise() {
  const Shape s{3, 5};
  return {
      {"add", {s, s}, [](const Tensors& in) { return in[0] + in[1]; }},
      {"add broadcast", {{2, 1, 5}, {3, 1}}, [](const Tensors& in) { return in[0] + in[1]; }},
      {"add itself", {s}, [](const Tensors& in) { return in[0] + in[0]; }},
      {"subtract", {s, {5}}, [](const Tensors& in) { return in[0] - in[1]; }},
      {"multiply", {s, s}, [](const Tensors& in) { return in[0] * in[1]; }},
      {"multiply broadcast", {{3, 5}, {3, 1}}, [](const Tensors& in) { return in[0] * in[1]; }},
      {"multiply scalar tensor", {{33, 31}, {1}}, [](const Tensors& in) { return in[0] * in[1]; }},
      {"multiply vector", {{33, 31}, {31}}, [](const Tensors& in) { return in[0] * in[1]; }},
      {"square", {s}, [](const Tensors& in) { return in[0] * in[0]; }},
      {"divide", {s, s}, [](const Tensors& in) { return in[0] / (in[1] * in[1] + 1); }},
      {"constants", {s}, [](const Tensors& in) { return 2 - (3 * in[0] + 1) / 4 - 1; }},
      {"reciprocal", {s}, [](const Tensors& in) { return 2 / (in[0] * in[0] + 1); }},
      {"exp", {s}, [](const Tensors& in) { return exp(in[0]); }},
      {"log", {s}, [](const Tensors& in) { return log(in[0] * in[0] + 0.5); }},
      {"tanh", {s}, [](const Tensors& in) { return tanh(in[0]); }},
      {"erf", {s}, [](const Tensors& in) { return erf(in[0]); }},
      {"sqrt", {s}, [](const Tensors& in) { return sqrt(in[0] * in[0] + 0.5); }},
      {"rsqrt", {s}, [](const Tensors& in) { return rsqrt(in[0] * in[0] + 0.5); }},
      {"relu", {s}, [](const Tensors& in) { return relu(in[0] + 0.01) * in[0]; }},
      {"abs", {s}, [](const Tensors& in) { return abs(in[0]) * in[0]; }},
      {"sign", {s}, [](const Tensors& in) { return sign(in[0]) * in[0] * in[0]; }},
      {"log1p", {s}, [](const Tensors& in) { return log1p(in[0] * in[0]); }},
      {"sigmoid", {s}, [](const Tensors& in) { return sigmoid(in[0] * 3); }, 0, [](const Tensors& in) { return 1 / (1 + exp(in[0] * -3)); }},
      {"silu", {s}, [](const Tensors& in) { return silu(in[0] * 3); }, 0, [](const Tensors& in) { return in[0] * 3 / (1 + exp(in[0] * -3)); }},
      {"softplus", {s}, [](const Tensors& in) { return softplus(in[0] * 3); }, 0, [](const Tensors& in) { return log(1 + exp(in[0] * 3)); }},
      {"clamp", {s}, [](const Tensors& in) { return clamp(in[0], -0.4, 0.8) * in[0]; }},
      {"pow", {s}, [](const Tensors& in) { return pow(in[0] * in[0] + 0.5, 1.7); }},
      {"pow cube", {s}, [](const Tensors& in) { return pow(in[0], 3); }},
      {"where",
       {s, {5}},
       [](const Tensors& in) {
         return where(mask(in, {3, 5}), in[0] * in[0], in[1] * in[1]);
       }},
      {"comparisons",
       {s, {5}},
       [](const Tensors& in) {
         return where(in[0] < in[1], in[0] * in[0], in[1] * in[1]) * where(in[0] >= in[1], in[0], in[1]) + cast(in[0] > 0.3, in[0].dtype()) * in[1];
       }},
      {"cast", {s}, [](const Tensors& in) { return cast(cast(in[0] * in[0], DType::f64), in[0].dtype()); }},
      {"long", {{4099}}, [](const Tensors& in) { return tanh(in[0]) * in[0]; }},
  };
}

std::vector<OpCase> shapes() {
  const Shape s{2, 3, 4};
  return {
      {"sum", {s}, [](const Tensors& in) { return sum(in[0] * in[0]); }},
      {"sum axes",
       {s},
       [](const Tensors& in) {
         return sum(in[0] * in[0], {0, 2});
       }},
      {"sum keep", {s}, [](const Tensors& in) { return sum(in[0] * in[0], {-2}, true); }},
      {"sum columns", {{65, 33}}, [](const Tensors& in) { return sum(in[0] * in[0], {0}); }},
      {"sum rows", {{65, 33}}, [](const Tensors& in) { return sum(in[0] * in[0], {1}); }},
      {"mean", {s}, [](const Tensors& in) { return mean(in[0] * in[0], {1}); }},
      {"max", {s}, [](const Tensors& in) { return max(in[0] * in[0], {-1}); }},
      {"max all", {s}, [](const Tensors& in) { return max(in[0]) * max(in[0]); }},
      {"min", {s}, [](const Tensors& in) { return min(in[0] * in[0], {-1}); }},
      {"min all", {s}, [](const Tensors& in) { return min(in[0]) * min(in[0]); }},
      {"var", {s}, [](const Tensors& in) { return var(in[0]) * var(in[0]); }},
      {"var axes",
       {s},
       [](const Tensors& in) {
         return var(in[0], {0, -1}, true, 1);
       }},
      {"norm", {s}, [](const Tensors& in) { return norm(in[0]); }, 0, [](const Tensors& in) { return sqrt(sum(in[0] * in[0])); }},
      {"norm axes", {s}, [](const Tensors& in) { return norm(in[0] * in[0], {1}, true) * in[0]; }},
      {"broadcast_to",
       {{3, 1}},
       [](const Tensors& in) {
         return broadcast_to(in[0] * in[0], {2, 3, 4});
       }},
      {"sum_to",
       {s},
       [](const Tensors& in) {
         return sum_to(in[0] * in[0], {3, 1});
       }},
      {"reshape",
       {s},
       [](const Tensors& in) {
         return reshape(in[0] * in[0], {6, 4});
       }},
      {"reshape with an open extent",
       {s},
       [](const Tensors& in) {
         return reshape(in[0] * in[0], {4, -1});
       }},
      {"stack",
       {s, s},
       [](const Tensors& in) {
         return stack({in[0], in[1] * in[1], in[0] * in[0]}, 1);
       }},
      {"chunk",
       {{2, 6, 3}},
       [](const Tensors& in) {
         const Tensors parts = chunk(in[0], 3, -2);
         return parts[0] * parts[1] + parts[2] * parts[2];
       }},
      {"permute",
       {s},
       [](const Tensors& in) {
         return permute(in[0] * in[0], {2, 0, 1});
       }},
      {"transpose", {s}, [](const Tensors& in) { return transpose(in[0] * in[0], 0, 2); }},
      {"concat",
       {{2, 3}, {2, 1}, {2, 4}},
       [](const Tensors& in) {
         return concat({in[0], in[1] * in[1], in[2]}, 1);
       }},
      {"slice", {{3, 5, 2}}, [](const Tensors& in) { return slice(in[0] * in[0], 1, 1, 4); }},
      {"gather",
       {{5, 3}},
       [](const Tensors& in) {
         return gather(in[0] * in[0], integers({4, 0, 4, 1}, {2, 2}, in[0].device()));
       }},
  };
}

std::vector<OpCase> products() {
  return {
      {"matmul", {{3, 4}, {4, 5}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"matmul batched", {{2, 3, 5, 4}, {3, 4, 2}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"matmul a^T", {{2, 4, 3}, {2, 4, 5}}, [](const Tensors& in) { return matmul(in[0], in[1], true); }},
      {"matmul b^T", {{2, 3, 4}, {2, 5, 4}}, [](const Tensors& in) { return matmul(in[0], in[1], false, true); }},
      {"matmul a^T b^T", {{4, 3}, {5, 4}}, [](const Tensors& in) { return matmul(in[0], in[1], true, true); }},
      {"matmul itself", {{3, 3}}, [](const Tensors& in) { return matmul(in[0], in[0]); }},
      {"matmul odd", {{1, 33}, {33, 65}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"linear",
       {{2, 3, 4}, {5, 4}, {5}},
       [](const Tensors& in) { return linear(in[0], in[1], in[2]); },
       0,
       [](const Tensors& in) { return linear_composed(in[0], in[1], in[2]); }},
      {"linear no bias",
       {{7, 4}, {3, 4}},
       [](const Tensors& in) { return linear(in[0], in[1]); },
       0,
       [](const Tensors& in) { return linear_composed(in[0], in[1], {}); }},
      {"linear odd",
       {{33, 65}, {31, 65}, {31}},
       [](const Tensors& in) { return linear(in[0], in[1], in[2]); },
       0,
       [](const Tensors& in) { return linear_composed(in[0], in[1], in[2]); }},
      {"linear_gelu",
       {{2, 3, 4}, {5, 4}, {5}},
       [](const Tensors& in) { return linear_gelu(in[0], in[1], in[2]); },
       0,
       [](const Tensors& in) { return gelu_composed(linear_composed(in[0], in[1], in[2]), Gelu::erf); }},
      {"linear_gelu tanh",
       {{33, 4}, {31, 4}, {31}},
       [](const Tensors& in) { return linear_gelu(in[0], in[1], in[2], Gelu::tanh); },
       0,
       [](const Tensors& in) { return gelu_composed(linear_composed(in[0], in[1], in[2]), Gelu::tanh); }},
      {"norm_linear",
       {{2, 37, 19}, {19}, {19}, {21, 19}, {21}},
       [](const Tensors& in) {
         return norm_linear(in[0] * 3 + 2, {in[1], in[2], 1e-6}, in[3], in[4]);
       },
       0,
       [](const Tensors& in) { return linear_composed(layer_norm_composed(in[0] * 3 + 2, in[1], in[2], 1e-6), in[3], in[4]); }},
      {"norm_linear_gelu",
       {{3, 5}, {5}, {5}, {7, 5}, {7}},
       [](const Tensors& in) {
         return norm_linear_gelu(in[0], {in[1], in[2], 1e-6}, in[3], in[4]);
       },
       0,
       [](const Tensors& in) { return gelu_composed(linear_composed(layer_norm_composed(in[0], in[1], in[2], 1e-6), in[3], in[4]), Gelu::erf); }},
      {"linear_residual",
       {{3, 2, 5}, {3, 2, 4}, {5, 4}, {5}},
       [](const Tensors& in) { return linear_residual(in[0], in[1], in[2], in[3]); },
       0,
       [](const Tensors& in) { return in[0] + linear_composed(in[1], in[2], in[3]); }},
      {"linear_residual scalar",
       {{3, 2, 5}, {3, 2, 4}, {5, 4}, {1}},
       [](const Tensors& in) { return linear_residual(in[0], in[1], in[2], {}, in[3]); },
       0,
       [](const Tensors& in) { return in[0] + in[3] * linear_composed(in[1], in[2], {}); }},
      {"linear_residual channels and rows",
       {{3, 22, 35}, {3, 22, 40}, {35, 40}, {35}, {35}},
       [](const Tensors& in) { return linear_residual(in[0], in[1], in[2], in[3], in[4], constant(in, {3}, "rows")); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], linear_composed(in[1], in[2], in[3]), in[4], constant(in, {3}, "rows")); }},
      {"linear_residual around its own input",
       {{3, 2, 5}, {5, 5}, {5}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return linear_residual(x, x, in[1], in[2]) * x;
       },
       0,
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return (x + linear_composed(x, in[1], in[2])) * x;
       }},
      {"a pre-norm branch",  // the stream's gradient is added to in place
       {{3, 2, 5}, {5}, {5}, {7, 5}, {7}, {5, 7}, {5}, {5}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return linear_residual(x, norm_linear_gelu(x, {in[1], in[2], 1e-6}, in[3], in[4]), in[5], in[6], in[7]) * x;
       },
       0,
       [](const Tensors& in) {
         const Tensor x = in[0] * 2, h = gelu_composed(linear_composed(layer_norm_composed(x, in[1], in[2], 1e-6), in[3], in[4]), Gelu::erf);
         return (x + in[7] * linear_composed(h, in[5], in[6])) * x;
       }},
      {"a branch without norm",
       {{70, 5}, {7, 5}, {5, 7}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return linear_residual(x, linear_gelu(x, in[1], {}), in[2]);
       },
       0,
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return x + linear_composed(gelu_composed(linear_composed(x, in[1], {}), Gelu::erf), in[2], {});
       }},
  };
}

std::vector<OpCase> fused() {
  return {
      {"gelu",
       {{3, 33}},
       [](const Tensors& in) { return gelu(in[0] * 2); },
       0,
       [](const Tensors& in) { return gelu_composed(in[0] * 2, Gelu::erf); }},
      {"gelu tanh",
       {{3, 31}},
       [](const Tensors& in) { return gelu(in[0] * 2, Gelu::tanh); },
       0,
       [](const Tensors& in) { return gelu_composed(in[0] * 2, Gelu::tanh); }},
      {"softmax", {{4, 7}}, [](const Tensors& in) { return softmax(in[0] * 3); }, 0, [](const Tensors& in) { return softmax_composed(in[0] * 3); }},
      {"softmax axis", {{4, 7, 2}}, [](const Tensors& in) { return softmax(in[0], 1); }},
      {"log_softmax",
       {{4, 33}},
       [](const Tensors& in) { return log_softmax(in[0] * 3); },
       0,
       [](const Tensors& in) { return log_softmax_composed(in[0] * 3); }},
      {"layer_norm",
       {{2, 3, 5}, {5}, {5}},
       [](const Tensors& in) { return layer_norm(in[0] * 3 + 2, in[1], in[2], 1e-6); },
       0,
       [](const Tensors& in) { return layer_norm_composed(in[0] * 3 + 2, in[1], in[2], 1e-6); }},
      {"layer_norm odd",
       {{65, 33}, {33}, {33}},
       [](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-5); },
       0,
       [](const Tensors& in) { return layer_norm_composed(in[0], in[1], in[2], 1e-5); }},
      {"rms_norm",
       {{6, 5}, {5}},
       [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-6); },
       0,
       [](const Tensors& in) { return rms_norm_composed(in[0], in[1], 1e-6); }},
      {"rms_norm odd",
       {{31, 65}, {65}},
       [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-6); },
       0,
       [](const Tensors& in) { return rms_norm_composed(in[0], in[1], 1e-6); }},
      {"dyt",
       {{2, 3, 5}, {1}, {5}, {5}},
       [](const Tensors& in) { return dyt(in[0], in[1], in[2], in[3]); },
       0,
       [](const Tensors& in) { return dyt_composed(in[0], in[1], in[2], in[3]); }},
      {"dyt odd",
       {{65, 33}, {1}, {33}, {33}},
       [](const Tensors& in) { return dyt(in[0] * 2, in[1], in[2], in[3]); },
       0,
       [](const Tensors& in) { return dyt_composed(in[0] * 2, in[1], in[2], in[3]); }},
      {"cross_entropy", {{6, 9}}, [](const Tensors& in) { return cross_entropy(in[0] * 3, labels(in, 6, 9)); }},
      {"cross_entropy smooth", {{33, 10}}, [](const Tensors& in) { return cross_entropy(in[0] * 3, labels(in, 33, 10), 0.1); }},
      {"soft_cross_entropy",
       {{5, 7}},
       [](const Tensors& in) {
         return soft_cross_entropy(in[0], softmax(constant(in, {5, 7}, "target")));
       },
       0,
       [](const Tensors& in) {
         return cross_entropy_composed(in[0], softmax(constant(in, {5, 7}, "target")));
       }},
      {"dropout", {{4, 33}}, [](const Tensors& in) { return dropout(in[0] * in[0], 0.4); }},
      {"gated_residual",
       {{3, 4, 5}, {3, 4, 5}},
       [](const Tensors& in) { return gated_residual(in[0], in[1]); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], {}, {}); }},
      {"gated_residual scalar",
       {{3, 4, 5}, {3, 4, 5}, {1}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], in[2]); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], in[2], {}); }},
      {"gated_residual channels",
       {{3, 4, 33}, {3, 4, 33}, {33}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], in[2], constant(in, {3}, "rows")); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], in[2], constant(in, {3}, "rows")); }},
      {"gated_residual rows",
       {{3, 4, 5}, {3, 4, 5}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], {}, constant(in, {3}, "rows")); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], {}, constant(in, {3}, "rows")); }},
  };
}

std::vector<OpCase> images() {
  const auto convolution = [](const char* name, const Shape& x, const Shape& w, bool bias, Conv2dOptions o) {
    return OpCase{.name = name,
                  .shapes = bias ? std::vector<Shape>{x, w, {w[0]}} : std::vector<Shape>{x, w},
                  .f = [o](const Tensors& in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); },
                  .composed = [o](const Tensors& in) { return conv2d_composed(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); }};
  };
  return {
      convolution("conv2d", {2, 3, 4, 5}, {2, 3, 3, 3}, true, {.stride = 1, .padding = 1}),
      convolution("conv2d strided", {2, 2, 7, 6}, {3, 2, 3, 3}, true, {.stride = 2, .padding = 1}),
      convolution("conv2d 1x1 strided", {3, 4, 5, 4}, {5, 4, 1, 1}, false, {.stride = 2}),
      convolution("conv2d oblong filter", {1, 2, 5, 6}, {2, 2, 2, 4}, true, {.stride = 3, .padding = 2}),
      convolution("conv2d whole image", {2, 1, 3, 3}, {1, 1, 3, 3}, false, {}),
      {"batch_norm2d", {{3, 2, 3, 2}, {2}, {2}}, [](const Tensors& in) { return batch_norm2d(in[0] * 2 + 1, in[1], in[2], 1e-5); }},
      {"batch_norm2d odd", {{5, 3, 7, 9}, {3}, {3}}, [](const Tensors& in) { return batch_norm2d(in[0], in[1], in[2], 1e-5); }},
      {"batch_norm2d given statistics",
       {{3, 2, 3, 2}, {2}, {2}, {2}, {2}},
       [](const Tensors& in) {
         return batch_norm2d(in[0], {in[3], in[4] * in[4]}, in[1], in[2], 0.5);
       }},
  };
}

std::vector<OpCase> talking_heads() {
  const Shape s{2, 3, 5, 4}, mix{3, 3}, bias{3};
  const auto run = [](AttentionOptions o) {
    return [o](const Tensors& in) { return attention_talking(in[0], in[1], in[2], in[3], in[4], in[5], in[6], o); };
  };
  const std::vector<Shape> shapes{s, s, s, mix, bias, mix, bias};
  return {
      {"mix_heads", {{2, 3, 5, 4}, mix, bias}, [](const Tensors& in) { return mix_heads(in[0], in[1], in[2]); }},
      {"attention_talking", shapes, run({})},
      {"attention_talking cross", {{1, 2, 3, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}, {2, 2}, {2}, {2, 2}, {2}}, run({.scale = 0.7})},
      {"attention_talking drop_key", shapes, run({.drop_key = 0.8})},
      {"attention_talking drop_key zero", shapes, run({.drop_key = 0.8, .empty = EmptyRow::zero})},
      {"attention_talking drop_key paper and dropout", shapes, run({.drop_key = 0.8, .dropout = 0.3, .empty = EmptyRow::paper})},
      {"attention_talking causal", shapes, run({.causal = true})},
      {"attention_talking dropout", shapes, run({.dropout = 0.3})},
  };
}

std::vector<OpCase> attention_cases() {
  const Shape s{2, 2, 5, 4};
  const auto run = [](AttentionOptions o) { return [o](const Tensors& in) { return attention(in[0], in[1], in[2], o); }; };
  const auto masked = [](EmptyRow empty) {
    return [empty](const Tensors& in) {
      const std::int64_t N = in[0].dim(2), M = in[1].dim(2);
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(N * M), 1);
      for (std::int64_t j = 0; j < M; ++j) keep[static_cast<std::size_t>(M + j)] = 0;  // query 1 has no key
      keep[0] = 0;
      return attention(in[0], in[1], in[2], {.empty = empty, .keep = Tensor(array_from(keep, {N, M}, in[0].device()))});
    };
  };
  std::vector<OpCase> cases{
      {"attention",
       {s, s, s},
       run({}),
       0,
       [](const Tensors& in) { return matmul(softmax_composed(matmul(in[0], in[1], false, true) * 0.5), in[2]); }},
      {"attention cross",
       {{1, 3, 3, 4}, {1, 3, 9, 4}, {1, 3, 9, 4}},
       run({.scale = 0.7}),
       0,
       [](const Tensors& in) { return matmul(softmax_composed(matmul(in[0], in[1], false, true) * 0.7), in[2]); }},
      {"attention causal", {s, s, s}, run({.causal = true})},
      {"attention causal cross", {{1, 2, 3, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}}, run({.drop_key = 0.3, .causal = true})},
      {"attention causal zero", {{1, 2, 7, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, run({.empty = EmptyRow::zero, .causal = true})},
      {"attention odd", {{1, 2, 33, 7}, {1, 2, 65, 7}, {1, 2, 65, 7}}, run({})},
      {"attention dropout", {s, s, s}, run({.dropout = 0.3})},
      {"attention drop_key", {s, s, s}, run({.drop_key = 0.5})},
      {"attention drop_key all", {s, s, s}, run({.drop_key = 1})},
      {"attention drop_key and dropout", {{1, 2, 17, 8}, {1, 2, 17, 8}, {1, 2, 17, 8}}, run({.drop_key = 0.4, .dropout = 0.2})},
      {"attention drop_key zero", {s, s, s}, run({.drop_key = 0.8, .empty = EmptyRow::zero})},
      {"attention drop_key paper", {s, s, s}, run({.drop_key = 0.8, .empty = EmptyRow::paper})},
      {"attention keep", {s, s, s}, masked(EmptyRow::keep_all)},
      {"attention keep zero", {s, s, s}, masked(EmptyRow::zero)},
      {"attention keep paper", {s, s, s}, masked(EmptyRow::paper)},
      {"attention_qkv drop_key block",
       {{2, 10, 12}},
       [](const Tensors& in) {
         return attention_qkv(in[0], 2, {.drop_key = 0.3, .drop_shape = DropShape::block, .grid = {3, 3}});
       }},
      {"attention_qkv", {{2, 5, 24}}, [](const Tensors& in) { return attention_qkv(in[0], 2, {.drop_key = 0.3}); }},
      {"attention_qkv odd", {{1, 17, 3 * 3 * 16}}, [](const Tensors& in) { return attention_qkv(in[0], 3); }},
  };
  for (DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross})
    for (DropSharing sharing : {DropSharing::per_entry, DropSharing::heads, DropSharing::column})
      cases.push_back({fmt::format("attention drop_key {} {}", name(shape), name(sharing)),
                       {{2, 2, 3, 3}, {2, 2, 13, 3}, {2, 2, 13, 3}},
                       run({.drop_key = 0.5, .drop_shape = shape, .drop_sharing = sharing, .grid = {3, 4}})});
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> cases;
    for (auto group : {elementwise(), shapes(), products(), fused(), images(), attention_cases(), talking_heads()})
      cases.insert(cases.end(), group.begin(), group.end());
    return cases;
  }();
  return all;
}

}  // namespace plumb::test
