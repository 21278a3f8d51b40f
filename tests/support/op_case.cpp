#include "tests/support/op_case.h"
#include "autograd/ops/linear_fusion.h"

#include <algorithm>
#include <cmath>

namespace plumb::test {

Tensors inputs_of(const OpCase& c, Defaults where) {
  Tensors inputs;
  for (std::size_t i = 0; i < c.shapes.size(); ++i)
    inputs.push_back(random_normal(c.shapes[i], 1, fmt::format("{}.{}", c.name, i), where) + c.shift);
  return inputs;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!(std::abs(a.at(i) - b[i]) <= difference))
      difference = std::abs(a[i] - b[i]);  // a NaN counts as the largest possible difference
    size = std::max(size, std::abs(b[i]));
  }
  return a.size() == b.size() ? difference / size : HUGE_VAL;
}

double relative_error(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() ? relative_error(a.values(), b.values()) : HUGE_VAL;
}

Tensors value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(variable(x));
  const Tensor y = f(leaves);
  Tensors result{y.detach()};
  for (const Tensor& g :
       grad(y, leaves, {.cotangent = random_normal(y.shape(), 3, "cotangent", {y.dtype(), y.device()})}))
    result.push_back(g);
  return result;
}

Tensors second_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(variable(x));
  const Tensor y = f(leaves);
  // The square y * y gives linear functions a second derivative as well.
  const Tensor loss = sum(y * random_normal_like(y, 3, "cotangent") + y * y * 0.1);
  return hvp(loss, leaves, random_normal_like(leaves, 4, "direction"));
}

namespace {

// A constant with the dtype and device of the inputs.
Tensor constant(const Tensors& in, const Shape& shape, const char* name) {
  return random_normal(shape, 5, name, {in[0].dtype(), in[0].device()});
}

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

// One of the results of an op that splits a tensor. Throws Error if there are fewer, as for an extent of 0.
Tensor part(const Tensors& parts, std::size_t i) {
  check(i < parts.size(), "[part] expected more than {} parts, got {}", i, parts.size());
  return parts[i];
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
      {"sigmoid",
       {s},
       [](const Tensors& in) { return sigmoid(in[0] * 3); },
       0,
       [](const Tensors& in) { return 1 / (1 + exp(in[0] * -3)); }},
      {"silu",
       {s},
       [](const Tensors& in) { return silu(in[0] * 3); },
       0,
       [](const Tensors& in) { return in[0] * 3 / (1 + exp(in[0] * -3)); }},
      {"softplus",
       {s},
       [](const Tensors& in) { return softplus(in[0] * 3); },
       0,
       [](const Tensors& in) { return log(1 + exp(in[0] * 3)); }},
      {"clamp", {s}, [](const Tensors& in) { return clamp(in[0], -0.4, 0.8) * in[0]; }},
      {"pow", {s}, [](const Tensors& in) { return pow(in[0] * in[0] + 0.5, 1.7); }},
      {"pow cube", {s}, [](const Tensors& in) { return pow(in[0], 3); }},
      {"pow of tensors", {s, {5}}, [](const Tensors& in) { return pow(in[0] * in[0] + 0.5, in[1]); }},
      {"maximum", {s, {5}}, [](const Tensors& in) { return maximum(in[0] * in[0], in[1]) * in[0]; }},
      {"minimum", {{3, 1}, s}, [](const Tensors& in) { return minimum(in[0] * in[0], in[1]) * in[1]; }},
      {"maximum with a number",
       {s},
       [](const Tensors& in) { return maximum(in[0] * in[0], 0.4) * minimum(in[0], 0.3); }},
      {"where of numbers",
       {s},
       [](const Tensors& in) { return where(in[0] > 0.2, 2, -0.5, in[0].dtype()) * in[0] * in[0]; }},
      {"sin", {{33}}, [](const Tensors& in) { return sin(in[0] * 3); }},
      {"cos", {{33}}, [](const Tensors& in) { return cos(in[0] * 3); }},
      {"expm1", {{33}}, [](const Tensors& in) { return expm1(in[0]); }},
      {"floor", {{33}}, [](const Tensors& in) { return floor(in[0] * 3) * in[0] * in[0]; }},
      {"round", {{33}}, [](const Tensors& in) { return round(in[0] * 3) * in[0] * in[0]; }},
      {"where with a number",
       {s},
       [](const Tensors& in) {
         const Tensor chosen = mask(in, {3, 5});
         return where(chosen, in[0] * in[0], 2) * where(chosen, -1, in[0]);
       }},
      {"masked_fill",
       {s},
       [](const Tensors& in) {
         return masked_fill(in[0] * in[0], isfinite(in[0]), 3) + masked_fill(in[0] * in[0], isnan(in[0]), 3);
       }},
      {"where",
       {s, {5}},
       [](const Tensors& in) {
         return where(mask(in, {3, 5}), in[0] * in[0], in[1] * in[1]);
       }},
      {"comparisons",
       {s, {5}},
       [](const Tensors& in) {
         return where(in[0] < in[1], in[0] * in[0], in[1] * in[1]) * where(in[0] >= in[1], in[0], in[1]) +
                cast(in[0] > 0.3, in[0].dtype()) * in[1];
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
      {"sum of an axis by its number", {s}, [](const Tensors& in) { return sum(in[0] * in[0], -1) * mean(in[0], -1); }},
      {"stddev",
       {s},
       [](const Tensors& in) { return stddev(in[0]) * stddev(in[0], 1, false, 1); },
       0,
       [](const Tensors& in) { return sqrt(var(in[0])) * sqrt(var(in[0], 1, false, 1)); }},
      {"logsumexp",
       {{5, 7}},
       [](const Tensors& in) { return logsumexp(in[0] * 3, -1, true) * logsumexp(in[0]); },
       0,
       [](const Tensors& in) { return log(sum(exp(in[0] * 3), -1, true)) * log(sum(exp(in[0]))); }},
      {"prod",
       {s},
       [](const Tensors& in) {
         return prod(in[0]) * prod(in[0], {0, 2}, true);
       }},
      {"prod odd", {{2, 7, 3}}, [](const Tensors& in) { return prod(in[0], 1); }},
      {"prod beside zeros",
       {{3, 5}},
       [](const Tensors& in) {  // one row has two zeros, another row has one
         return prod(in[0] * cast(mask(in, {3, 5}), in[0].dtype()), -1);
       }},
      {"norm",
       {s},
       [](const Tensors& in) { return norm(in[0]); },
       0,
       [](const Tensors& in) { return sqrt(sum(in[0] * in[0])); }},
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
      {"x[i]", {s}, [](const Tensors& in) { return in[0][1] * in[0][-2] + select(in[0], -1, -1)[0][0]; }},
      {"squeeze, unsqueeze and flatten",
       {{2, 1, 3, 1}},
       [](const Tensors& in) {
         return squeeze(in[0] * in[0]) * flatten(squeeze(unsqueeze(in[0], -2), {1, -1}), 1, -1);
       }},
      {"split",
       {{2, 7, 3}},
       [](const Tensors& in) {
         const Tensors parts = split(in[0], 3, 1), others = split(in[0], {2, 5}, -2);
         return part(parts, 0) * part(parts, 1) + sum(others[0]) * part(parts, 2) * part(parts, 2);
       }},
      {"unbind",
       {{4, 3}},
       [](const Tensors& in) {
         const Tensors rows = unbind(in[0]), columns = unbind(in[0], -1);
         return part(rows, 0) * part(rows, 3) + sum(part(columns, 2) * part(columns, 1));
       }},
      {"pad",
       {{2, 3}},
       [](const Tensors& in) {
         return pad(in[0] * in[0], {{1, 0}, {0, 2}}, 1.5);
       }},
      {"repeat",
       {{2, 1, 3}},
       [](const Tensors& in) {
         return repeat(in[0] * in[0], {2, 1, 3, 2});
       }},
      {"repeat_interleave", {{2, 3, 2}}, [](const Tensors& in) { return repeat_interleave(in[0] * in[0], 3, -2); }},
      {"flip",
       {s},
       [](const Tensors& in) {
         return flip(in[0] * in[0], {0, -1}) * flip(in[0], 1) * flip(in[0]);
       }},
      {"roll", {{5, 3}}, [](const Tensors& in) { return roll(in[0] * in[0], 2, 0) * roll(in[0], -4, 1); }},
      {"tril and triu",
       {{2, 3, 5}},
       [](const Tensors& in) { return tril(in[0] * in[0], 1) + triu(in[0] * in[0] * in[0], -1); }},
      {"diag of a vector", {{3}}, [](const Tensors& in) { return diag(in[0] * in[0], 1) + diag(in[0], -1); }},
      {"diag of a matrix",
       {{3, 5}},
       [](const Tensors& in) { return diag(in[0] * in[0], 1) * diag(in[0] * in[0]) + trace(in[0]); }},
      {"clone", {s}, [](const Tensors& in) { return clone(in[0] * in[0]) * in[0]; }},
      {"cumsum", {{2, 33, 3}}, [](const Tensors& in) { return cumsum(in[0] * in[0], 1) * cumsum(in[0], -1); }},
      {"sort", {{3, 7, 2}}, [](const Tensors& in) { return sort(in[0], 1).values * sort(in[0], 1, true).values; }},
      {"topk",
       {{3, 7}},
       [](const Tensors& in) { return topk(in[0] * in[0], 3).values * topk(in[0], 3, -1, false).values; }},
      {"index_select",
       {{3, 5, 2}},
       [](const Tensors& in) {
         return index_select(in[0] * in[0], -2, integers({{4, 0, 4}, {1, 4, 3}}, in[0].device()));
       }},
      {"embedding",
       {{5, 3}},
       [](const Tensors& in) {
         return embedding(integers({4, 0, 4, 1, 1}, in[0].device()), in[0] * in[0]);
       }},
      {"take_along_axis",
       {{2, 5, 3}},
       [](const Tensors& in) {
         return take_along_axis(in[0] * in[0],
                                integers({{{0, 4, 4}, {0, 4, 1}}, {{2, 2, 3}, {2, 1, 0}}}, in[0].device()), 1);
       }},
      {"scatter_add",
       {{2, 5}, {2, 7}},
       [](const Tensors& in) {
         return scatter_add(in[0] * in[0], -1, integers({{0, 4, 4, 0, 4, 1, 4}, {2, 2, 3, 2, 1, 0, 2}}, in[0].device()),
                            in[1] * in[1]);
       }},
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
      {"matrix x vector",
       {{2, 3, 4}, {4}, {3}},
       [](const Tensors& in) {
         return matmul(matmul(in[0], in[1]), in[2]) + matmul(in[2], matmul(in[0], in[1], false)[0]);
       }},
      {"vector x matrix", {{4}, {2, 4, 3}}, [](const Tensors& in) { return matmul(in[0], in[1]); }},
      {"matrix^T x vector", {{4, 3}, {4}}, [](const Tensors& in) { return matmul(in[0], in[1], true); }},
      {"dot and outer", {{5}, {5}, {3}}, [](const Tensors& in) { return dot(in[0], in[1]) * outer(in[0], in[2]); }},
      {"einsum, both as they lie",
       {{2, 3, 5, 4}, {2, 3, 7, 4}},
       [](const Tensors& in) { return einsum("bhid,bhjd->bhij", in[0], in[1]); },
       0,
       [](const Tensors& in) { return matmul(in[0], in[1], false, true); }},
      {"einsum, both permuted",
       {{5, 2, 4, 3}, {4, 7, 3, 2}},
       [](const Tensors& in) { return einsum("ibdh, djhb -> jbih", in[0], in[1]); },
       0,
       [](const Tensors& in) {
         return permute(matmul(permute(in[0], {1, 3, 0, 2}), permute(in[1], {3, 2, 0, 1})), {3, 0, 2, 1});
       }},
      {"einsum, several letters contracted",
       {{2, 3, 5}, {5, 3, 4}},
       [](const Tensors& in) { return einsum("aij,jib", in[0], in[1]); },
       0,
       [](const Tensors& in) {
         return matmul(reshape(in[0], {2, 15}), reshape(permute(in[1], {1, 0, 2}), {15, 4}));
       }},
      {"einsum, letters of one operand summed over",
       {{2, 3, 5}, {5, 4}},
       [](const Tensors& in) { return einsum("aij,jk->a", in[0], in[1]); },
       0,
       [](const Tensors& in) { return matmul(sum(in[0], 1), sum(in[1], 1)); }},
      {"einsum without contraction",
       {{2, 3}, {3, 2}},
       [](const Tensors& in) { return einsum("ij,ji->ij", in[0], in[1]) + einsum("ij,kl->", in[0], in[1]); },
       0,
       [](const Tensors& in) { return in[0] * transpose(in[1]) + sum(in[0]) * sum(in[1]); }},
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
      {"linear gelu",
       {{2, 3, 4}, {5, 4}, {5}},
       [](const Tensors& in) { return linear(in[0], in[1], in[2], {.gelu = Gelu::erf}); },
       0,
       [](const Tensors& in) { return gelu_composed(linear_composed(in[0], in[1], in[2]), Gelu::erf); }},
      {"linear gelu tanh",
       {{33, 4}, {31, 4}, {31}},
       [](const Tensors& in) { return linear(in[0], in[1], in[2], {.gelu = Gelu::tanh}); },
       0,
       [](const Tensors& in) { return gelu_composed(linear_composed(in[0], in[1], in[2]), Gelu::tanh); }},
      {"norm linear",
       {{2, 37, 19}, {19}, {19}, {21, 19}, {21}},
       [](const Tensors& in) {
         return linear(in[0] * 3 + 2, in[3], in[4], {.norm = {in[1], in[2], 1e-6}});
       },
       0,
       [](const Tensors& in) {
         return linear_composed(layer_norm_composed(in[0] * 3 + 2, in[1], in[2], 1e-6), in[3], in[4]);
       }},
      {"norm linear gelu",
       {{3, 5}, {5}, {5}, {7, 5}, {7}},
       [](const Tensors& in) {
         return linear(in[0], in[3], in[4], {.norm = {in[1], in[2], 1e-6}, .gelu = Gelu::erf});
       },
       0,
       [](const Tensors& in) {
         return gelu_composed(linear_composed(layer_norm_composed(in[0], in[1], in[2], 1e-6), in[3], in[4]), Gelu::erf);
       }},
      {"linear residual",
       {{3, 2, 5}, {3, 2, 4}, {5, 4}, {5}},
       [](const Tensors& in) { return linear(in[1], in[2], in[3], {.sum = ResidualSum{in[0]}}); },
       0,
       [](const Tensors& in) { return in[0] + linear_composed(in[1], in[2], in[3]); }},
      {"linear residual scalar",
       {{3, 2, 5}, {3, 2, 4}, {5, 4}, {1}},
       [](const Tensors& in) {
         return linear(in[1], in[2], {}, {.sum = ResidualSum{in[0], in[3]}});
       },
       0,
       [](const Tensors& in) { return in[0] + in[3] * linear_composed(in[1], in[2], {}); }},
      {"linear residual channels and rows",
       {{3, 22, 35}, {3, 22, 40}, {35, 40}, {35}, {35}},
       [](const Tensors& in) {
         return linear(in[1], in[2], in[3], {.sum = ResidualSum{in[0], in[4], constant(in, {3}, "rows")}});
       },
       0,
       [](const Tensors& in) {
         return gated_residual_composed(in[0], linear_composed(in[1], in[2], in[3]), in[4], constant(in, {3}, "rows"));
       }},
      {"linear residual around its own input",
       {{3, 2, 5}, {5, 5}, {5}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return linear(x, in[1], in[2], {.sum = ResidualSum{x}}) * x;
       },
       0,
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return (x + linear_composed(x, in[1], in[2])) * x;
       }},
      {"a pre-norm branch",  // the gradient of the stream is accumulated in place
       {{3, 2, 5}, {5}, {5}, {7, 5}, {7}, {5, 7}, {5}, {5}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         const Tensor hidden = linear(x, in[3], in[4], {.norm = {in[1], in[2], 1e-6}, .gelu = Gelu::erf});
         return linear(hidden, in[5], in[6], {.sum = ResidualSum{x, in[7]}}) * x;
       },
       0,
       [](const Tensors& in) {
         const Tensor x = in[0] * 2,
                      h = gelu_composed(linear_composed(layer_norm_composed(x, in[1], in[2], 1e-6), in[3], in[4]),
                                        Gelu::erf);
         return (x + in[7] * linear_composed(h, in[5], in[6])) * x;
       }},
      {"a branch without norm",
       {{70, 5}, {7, 5}, {5, 7}},
       [](const Tensors& in) {
         const Tensor x = in[0] * 2;
         return linear(linear(x, in[1], {}, {.gelu = Gelu::erf}), in[2], {}, {.sum = ResidualSum{x}});
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
      {"softmax",
       {{4, 7}},
       [](const Tensors& in) { return softmax(in[0] * 3); },
       0,
       [](const Tensors& in) { return softmax_composed(in[0] * 3); }},
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
      {"cross_entropy smooth",
       {{33, 10}},
       [](const Tensors& in) { return cross_entropy(in[0] * 3, labels(in, 33, 10), 0.1); }},
      {"soft_cross_entropy",
       {{5, 7}},
       [](const Tensors& in) {
         return soft_cross_entropy(in[0], softmax(constant(in, {5, 7}, "target")));
       },
       0,
       [](const Tensors& in) {
         return cross_entropy_composed(in[0], softmax(constant(in, {5, 7}, "target")));
       }},
      {"mse_loss", {{3, 5}, {3, 5}}, [](const Tensors& in) { return mse_loss(in[0], in[1]); }},
      {"l1_loss", {{3, 5}, {3, 5}}, [](const Tensors& in) { return l1_loss(in[0] * in[0], in[1]); }},
      {"huber_loss", {{3, 5}, {3, 5}}, [](const Tensors& in) { return huber_loss(in[0] * in[0], in[1], 0.7); }},
      {"binary_cross_entropy_with_logits",
       {{3, 5}, {3, 5}},
       [](const Tensors& in) { return binary_cross_entropy_with_logits(in[0] * 3, sigmoid(in[1])); },
       0,
       [](const Tensors& in) {
         const Tensor p = sigmoid(in[0] * 3), t = sigmoid(in[1]);
         return -mean(t * log(p) + (1 - t) * log(1 - p));
       }},
      {"kl_div",
       {{2, 3, 5}, {2, 3, 5}},
       [](const Tensors& in) { return kl_div(log_softmax(in[0]), softmax(in[1])); },
       0,
       [](const Tensors& in) {
         const Tensor t = softmax(in[1]);
         return sum(t * (log(t) - log_softmax(in[0]))) / 6;
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
      {"gated_residual channels of images",
       {{3, 5, 4, 9}, {3, 5, 4, 9}, {5, 1, 1}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], in[2], constant(in, {3}, "rows")); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], in[2], constant(in, {3}, "rows")); }},
      {"gated_residual channels of sequences",
       {{2, 33, 7}, {2, 33, 7}, {33, 1}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], in[2]); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], in[2], {}); }},
      {"gated_residual rows",
       {{3, 4, 5}, {3, 4, 5}},
       [](const Tensors& in) { return gated_residual(in[0], in[1], {}, constant(in, {3}, "rows")); },
       0,
       [](const Tensors& in) { return gated_residual_composed(in[0], in[1], {}, constant(in, {3}, "rows")); }},
  };
}

std::vector<OpCase> images() {
  const auto convolution = [](const char* name, const Shape& x, const Shape& w, bool bias, Conv2dGeometry o) {
    return OpCase{
        .name = name,
        .shapes = bias ? std::vector<Shape>{x, w, {w[0]}} : std::vector<Shape>{x, w},
        .f = [o](const Tensors& in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); },
        .composed =
            [o](const Tensors& in) { return conv2d_composed(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), o); }};
  };
  return {
      convolution("conv2d", {2, 3, 4, 5}, {2, 3, 3, 3}, true, {.stride = 1, .padding = 1}),
      convolution("conv2d strided", {2, 2, 7, 6}, {3, 2, 3, 3}, true, {.stride = 2, .padding = 1}),
      convolution("conv2d 1x1 strided", {3, 4, 5, 4}, {5, 4, 1, 1}, false, {.stride = 2}),
      convolution("conv2d oblong filter", {1, 2, 5, 6}, {2, 2, 2, 4}, true, {.stride = 3, .padding = 2}),
      convolution("conv2d whole image", {2, 1, 3, 3}, {1, 1, 3, 3}, false, {}),
      {"max_pool2d",
       {{2, 3, 5, 7}},
       [](const Tensors& in) { return max_pool2d(in[0] * in[0], {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"max_pool2d, windows that touch",
       {{1, 2, 4, 6}},
       [](const Tensors& in) { return max_pool2d(in[0] * in[0], {}); }},
      {"avg_pool2d",
       {{2, 3, 5, 7}},
       [](const Tensors& in) { return avg_pool2d(in[0] * in[0], {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"avg_pool2d, windows that touch",
       {{1, 2, 4, 6}},
       [](const Tensors& in) { return avg_pool2d(in[0] * in[0], {}); },
       0,
       [](const Tensors& in) {
         return mean(reshape(in[0] * in[0], Shape{1, 2, 2, 2, 3, 2}), {3, 5});
       }},
      {"batch_norm2d",
       {{3, 2, 3, 2}, {2}, {2}},
       [](const Tensors& in) { return batch_norm2d(in[0] * 2 + 1, in[1], in[2], 1e-5); }},
      {"batch_norm2d odd",
       {{5, 3, 7, 9}, {3}, {3}},
       [](const Tensors& in) { return batch_norm2d(in[0], in[1], in[2], 1e-5); }},
      {"batch_norm2d given statistics",
       {{3, 2, 3, 2}, {2}, {2}, {2}, {2}},
       [](const Tensors& in) { return batch_norm2d(in[0], in[3], in[4] * in[4], in[1], in[2], 0.5); }},
  };
}

std::vector<OpCase> talking_heads() {
  const Shape s{2, 3, 5, 4}, mix{3, 3}, bias{3};
  const auto run = [](AttentionMasking o) {
    return [o](const Tensors& in) { return attention_talking(in[0], in[1], in[2], in[3], in[4], in[5], in[6], o); };
  };
  const std::vector<Shape> shapes{s, s, s, mix, bias, mix, bias};
  return {
      {"mix_heads", {{2, 3, 5, 4}, mix, bias}, [](const Tensors& in) { return mix_heads(in[0], in[1], in[2]); }},
      {"attention_talking", shapes, run({})},
      {"attention_talking cross",
       {{1, 2, 3, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}, {2, 2}, {2}, {2, 2}, {2}},
       run({.scale = 0.7})},
      {"attention_talking drop_key", shapes, run({.drop_key = 0.8})},
      {"attention_talking drop_key zero", shapes, run({.drop_key = 0.8, .empty = EmptyRow::zero})},
      {"attention_talking drop_key paper and dropout", shapes,
       run({.drop_key = 0.8, .dropout = 0.3, .empty = EmptyRow::paper})},
      {"attention_talking causal", shapes, run({.causal = true})},
      {"attention_talking dropout", shapes, run({.dropout = 0.3})},
  };
}

std::vector<OpCase> attention_cases() {
  const Shape s{2, 2, 5, 4};
  const auto run = [](AttentionMasking o) {
    return [o](const Tensors& in) { return attention(in[0], in[1], in[2], o); };
  };
  const auto masked = [](EmptyRow empty) {
    return [empty](const Tensors& in) {
      const std::int64_t N = in[0].dim(2), M = in[1].dim(2);
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(extent_product("attention", {N, M})));
      for (std::size_t i = 0; i < keep.size(); ++i)  // query 1 may attend to no key
        keep[i] = i > 0 && static_cast<std::int64_t>(i) / M != 1;
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
      {"attention causal zero",
       {{1, 2, 7, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}},
       run({.empty = EmptyRow::zero, .causal = true})},
      {"attention odd", {{1, 2, 33, 7}, {1, 2, 65, 7}, {1, 2, 65, 7}}, run({})},
      {"attention dropout", {s, s, s}, run({.dropout = 0.3})},
      {"attention drop_key", {s, s, s}, run({.drop_key = 0.5})},
      {"attention drop_key all", {s, s, s}, run({.drop_key = 1})},
      {"attention drop_key and dropout",
       {{1, 2, 17, 8}, {1, 2, 17, 8}, {1, 2, 17, 8}},
       run({.drop_key = 0.4, .dropout = 0.2})},
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
      {"attention_q_kv",
       {{2, 3, 8}, {2, 5, 16}},
       [](const Tensors& in) { return attention_q_kv(in[0], in[1], 2, {.drop_key = 0.3}); }},
      {"attention_q_kv keep",
       {{1, 33, 6}, {1, 65, 12}},
       [](const Tensors& in) {
         std::vector<std::uint8_t> keep(65, 1);
         for (std::size_t j = 40; j < 65; ++j) keep[j] = 0;
         return attention_q_kv(in[0], in[1], 3, {.keep = Tensor(array_from(keep, {1, 1, 1, 65}, in[0].device()))});
       },
       0,
       [](const Tensors& in) {
         const auto heads = [](const Tensor& x) { return permute(reshape(x, {1, x.dim(1), 3, 2}), {0, 2, 1, 3}); };
         const Tensor k = heads(slice(slice(in[1], 1, 0, 40), 2, 0, 6)),
                      v = heads(slice(slice(in[1], 1, 0, 40), 2, 6, 12));
         const Tensor p = softmax_composed(matmul(heads(in[0]), k, false, true) * (1 / std::sqrt(2.0)));
         return reshape(permute(matmul(p, v), {0, 2, 1, 3}), Shape{1, 33, 6});
       }},
  };
  for (DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross})
    for (DropSharing sharing : {DropSharing::per_entry, DropSharing::heads, DropSharing::column})
      cases.push_back({fmt::format("attention drop_key {} {}", enum_name(shape), enum_name(sharing)),
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
