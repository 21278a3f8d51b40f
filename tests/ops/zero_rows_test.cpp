// Rows of zeros, and queries without keys, in every op that normalises. The tests check the values that
// autograd/ops.h states, and that gradients of first and second order have no NaN: in every dtype, fused
// and composed, on every device.
#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/ops/linear_fusion.h"
#include "core/precision.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Whether an op that takes bf16 gets its input as bf16 or unchanged.
enum class Input { plain, bf16 };
ResultDType result_of(Input i) { return i == Input::bf16 ? ResultDType::product : ResultDType::weight; }

// An op whose first input has rows of zeros: all rows, or all but the last. For attention, the last sample is not zero.
struct ZeroCase {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Tensors&, double eps, Input)> f;
  // If all rows of the first input are zeros: the expected value of f, and the expected gradient of the first input
  // under the cotangent dy.
  std::function<Tensor(const Tensors&, double eps)> value;
  std::function<Tensor(const Tensors&, double eps, const Tensor& dy)> gradient;
};

Tensor given(const Tensor& x, Input input) { return input == Input::bf16 ? cast(cast(x, DType::bf16), x.dtype()) : x; }

Tensor like(const Tensor& x, const Shape& shape, double value) { return full(shape, value, {x.dtype(), x.device()}); }
Tensor rows_of(const Tensor& row, const Tensor& x) { return broadcast_to(row, x.shape()); }

std::vector<ZeroCase> norms(std::int64_t D) {
  const std::string size = fmt::format(" [{}]", D);
  // (u - mean(u)) / sqrt(eps), u = weight dy
  const auto layer_norm_gradient = [](const Tensor& u, double eps) {
    return (u - mean(u, {-1}, true)) * (1 / std::sqrt(eps));
  };
  std::vector<ZeroCase> cases{
      {"layer_norm" + size,
       {{4, D}, {D}, {D}},
       [](const Tensors& in, double eps, Input i) { return layer_norm(given(in[0], i), in[1], in[2], eps); },
       [](const Tensors& in, double) { return rows_of(in[2], in[0]); },
       [=](const Tensors& in, double eps, const Tensor& dy) { return layer_norm_gradient(in[1] * dy, eps); }},
      {"rms_norm" + size,
       {{4, D}, {D}},
       [](const Tensors& in, double eps, Input i) { return rms_norm(given(in[0], i), in[1], eps); },
       [](const Tensors& in, double) { return like(in[0], in[0].shape(), 0); },
       [](const Tensors& in, double eps, const Tensor& dy) { return in[1] * dy * (1 / std::sqrt(eps)); }},
      {"norm linear" + size,
       {{4, D}, {D}, {D}, {7, D}, {7}},
       [](const Tensors& in, double eps, Input i) {
         const PrecisionScope precision(i == Input::bf16 ? Precision::bf16 : Precision::f32);
         const Tensor y = linear(in[0], in[3], in[4], {.norm = {in[1], in[2], eps}, .result = result_of(i)});
         return y.dtype() == DType::bf16 ? cast(y, in[0].dtype()) : y;
       },
       [](const Tensors& in, double) {
         return broadcast_to(linear(reshape(in[2], {1, -1}), in[3], in[4]), {4, 7});
       },
       [=](const Tensors& in, double eps, const Tensor& dy) {
         return layer_norm_gradient(in[1] * matmul(dy, in[3]), eps);
       }},
      {"norm linear gelu" + size,
       {{4, D}, {D}, {D}, {7, D}, {7}},
       [](const Tensors& in, double eps, Input i) {
         const PrecisionScope precision(i == Input::bf16 ? Precision::bf16 : Precision::f32);
         const Tensor y =
             linear(in[0], in[3], in[4], {.norm = {in[1], in[2], eps}, .gelu = Gelu::erf, .result = result_of(i)});
         return y.dtype() == DType::bf16 ? cast(y, in[0].dtype()) : y;
       },
       [](const Tensors& in, double) {
         return broadcast_to(gelu(linear(reshape(in[2], {1, -1}), in[3], in[4])), {4, 7});
       },
       [=](const Tensors& in, double eps, const Tensor& dy) {
         const Tensor u =
             variable(broadcast_to(linear(reshape(in[2].detach(), {1, -1}), in[3].detach(), in[4].detach()), {4, 7}));
         return layer_norm_gradient(in[1] * matmul(grad(gelu(u), u, {.cotangent = dy}), in[3]), eps);
       }},
      {"dyt" + size,
       {{4, D}, {1}, {D}, {D}},
       [](const Tensors& in, double, Input i) { return dyt(given(in[0], i), in[1], in[2], in[3]); },
       [](const Tensors& in, double) { return rows_of(in[3], in[0]); },
       [](const Tensors& in, double, const Tensor& dy) { return in[1] * in[2] * dy; }},
      {"softmax" + size,
       {{4, D}},
       [](const Tensors& in, double, Input i) { return softmax(given(in[0], i)); },
       [=](const Tensors& in, double) { return like(in[0], in[0].shape(), 1.0 / static_cast<double>(D)); },
       [=](const Tensors&, double, const Tensor& dy) {
         return (dy - mean(dy, {-1}, true)) * (1.0 / static_cast<double>(D));
       }},
      {"log_softmax" + size,
       {{4, D}},
       [](const Tensors& in, double, Input i) { return log_softmax(given(in[0], i)); },
       [=](const Tensors& in, double) { return like(in[0], in[0].shape(), -std::log(static_cast<double>(D))); },
       [](const Tensors&, double, const Tensor& dy) { return dy - mean(dy, {-1}, true); }},
  };
  // The composed forms of the fused ops, which have the same values and gradients.
  const std::map<std::string, std::function<Tensor(const Tensors&, double, Input)>> composed{
      {"layer_norm",
       [](const Tensors& in, double eps, Input i) { return layer_norm_composed(given(in[0], i), in[1], in[2], eps); }},
      {"rms_norm",
       [](const Tensors& in, double eps, Input i) { return rms_norm_composed(given(in[0], i), in[1], eps); }},
      {"dyt", [](const Tensors& in, double, Input i) { return dyt_composed(given(in[0], i), in[1], in[2], in[3]); }},
      {"softmax", [](const Tensors& in, double, Input i) { return softmax_composed(given(in[0], i)); }},
      {"log_softmax", [](const Tensors& in, double, Input i) { return log_softmax_composed(given(in[0], i)); }}};
  for (const auto& [name, f] : composed) {
    const auto fused = std::ranges::find(cases, name + size, &ZeroCase::name);
    REQUIRE(fused != cases.end());
    ZeroCase c = *fused;
    c.name = name + "_composed" + size;
    c.f = f;
    cases.push_back(c);
  }
  return cases;
}

ZeroCase batch_norm() {
  return {"batch_norm2d",
          {{3, 2, 3, 5}, {2}, {2}},
          [](const Tensors& in, double eps, Input i) { return batch_norm2d(given(in[0], i), in[1], in[2], eps); },
          [](const Tensors& in, double) {
            return broadcast_to(reshape(in[2], {1, -1, 1, 1}), in[0].shape());
          },
          [](const Tensors& in, double eps, const Tensor& dy) {
            return reshape(in[1], {1, -1, 1, 1}) * (dy - mean(dy, {0, 2, 3}, true)) * (1 / std::sqrt(eps));
          }};
}

// Queries of zeros, some of which have no key: DropKey has dropped all keys, or no key is allowed.
enum class Loss { keep_mask, drop_key, causal };
const char* name(Loss loss) {
  return loss == Loss::keep_mask ? "keep mask" : loss == Loss::drop_key ? "drop_key" : "causal";
}
constexpr std::int64_t B = 2, H = 2, N = 7, M = 5, E = 4;  // with causal, the first N - M queries precede all keys

// Whether a query has lost every key.
bool is_empty(Loss loss, std::int64_t query, std::int64_t queries = N) {
  return loss == Loss::drop_key || (loss == Loss::causal ? query < queries - M : query == 1);
}

AttentionMasking options(EmptyRow empty, Loss loss, const Tensor& x, std::int64_t queries = N) {
  AttentionMasking o{.drop_key = loss == Loss::drop_key ? 1.0 : 0.0, .empty = empty, .causal = loss == Loss::causal};
  if (loss != Loss::keep_mask) return o;
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(queries * M), 1);
  for (std::int64_t j = 0; j < M; ++j) keep[static_cast<std::size_t>(M + j)] = 0;
  o.keep = Tensor(array_from(keep, {queries, M}, x.device()));
  return o;
}

// Whether a query without keys has the probability 0 for all keys.
bool is_zero(EmptyRow empty, Loss loss) { return loss != Loss::drop_key || empty == EmptyRow::zero; }

// The probabilities [N, M] of queries of zeros: equal for all keys that a query sees.
Tensor equal_probabilities(EmptyRow empty, Loss loss, const Tensor& x, std::int64_t queries = N) {
  std::vector<double> p(static_cast<std::size_t>(queries * M));
  for (std::int64_t n = 0; n < queries; ++n) {
    const bool none = is_empty(loss, n, queries);
    const std::int64_t keys = none || loss != Loss::causal ? M : n + M - queries + 1;
    for (std::int64_t j = 0; j < keys; ++j)
      p[static_cast<std::size_t>(n * M + j)] = none && is_zero(empty, loss) ? 0 : 1.0 / static_cast<double>(keys);
  }
  return tensor(p, {queries, M}, {x.dtype(), x.device()});
}

ZeroCase attention_case(EmptyRow empty, Loss loss) {
  return {fmt::format("attention {} {}", name(loss), enum_name(empty)),
          {{B, H, N, E}, {B, H, M, E}, {B, H, M, E}},
          [=](const Tensors& in, double, Input i) {
            return attention(given(in[0], i), given(in[1], i), given(in[2], i), options(empty, loss, in[0]));
          },
          [=](const Tensors& in, double) { return matmul(equal_probabilities(empty, loss, in[0]), in[2]); },
          [=](const Tensors& in, double, const Tensor& dy) {
            const Tensor p = equal_probabilities(empty, loss, in[0]), dp = matmul(dy, in[2], false, true);
            // Unless keep_all undoes DropKey, no gradient flows through the scores of queries without keys.
            std::vector<double> flows(N, 1);
            for (std::int64_t n = 0; n < N; ++n)
              if (is_empty(loss, n) && (empty != EmptyRow::keep_all || is_zero(empty, loss)))
                flows[static_cast<std::size_t>(n)] = 0;
            const Tensor ds = p * (dp - sum(p * dp, {-1}, true)) * tensor(flows, {N, 1}, {dy.dtype(), dy.device()});
            return matmul(ds, in[1]) * (1 / std::sqrt(static_cast<double>(E)));
          }};
}

// q, k and v are packed and all zero; they are bf16 if the input is bf16.
ZeroCase attention_qkv_case(EmptyRow empty, Loss loss) {
  return {fmt::format("attention_qkv {} {}", name(loss), enum_name(empty)),
          {{B, M, 3 * H * E}},
          [=](const Tensors& in, double, Input i) {
            const Tensor y =
                attention_qkv(i == Input::bf16 ? cast(in[0], DType::bf16) : in[0], H, options(empty, loss, in[0], M));
            return cast(y, in[0].dtype());
          },
          [=](const Tensors& in, double) {
            return like(in[0], {B, M, H * E}, 0);
          },
          [=](const Tensors& in, double, const Tensor& dy) {  // q and k are 0, so the gradient flows only to v
            const Tensor none = like(in[0], {B, M, H * E}, 0);
            return concat({none, none, matmul(equal_probabilities(empty, loss, in[0], M), dy, true)}, -1);
          }};
}

// Heads are mixed. The zeros of q stay zeros, because the bias before the softmax shifts whole rows.
ZeroCase attention_talking_case(EmptyRow empty, Loss loss) {
  return {fmt::format("attention_talking {} {}", name(loss), enum_name(empty)),
          {{B, H, N, E}, {B, H, M, E}, {B, H, M, E}, {H, H}, {H}, {H, H}, {H}},
          [=](const Tensors& in, double, Input i) {
            return attention_talking(given(in[0], i), given(in[1], i), given(in[2], i), in[3], in[4], in[5], in[6],
                                     options(empty, loss, in[0]));
          },
          [=](const Tensors& in, double) {
            return matmul(mix_heads(broadcast_to(equal_probabilities(empty, loss, in[0]), {B, H, N, M}), in[5], in[6]),
                          in[2]);
          },
          {}};
}

const std::vector<ZeroCase>& zero_cases() {
  static const std::vector<ZeroCase> all = [] {
    std::vector<ZeroCase> cases = norms(5);
    for (const ZeroCase& c : norms(33)) cases.push_back(c);
    cases.push_back(batch_norm());
    for (const EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper})
      for (const Loss loss : {Loss::keep_mask, Loss::drop_key, Loss::causal})
        for (const auto& make : {attention_case, attention_qkv_case, attention_talking_case})
          cases.push_back(make(empty, loss));
    return cases;
  }();
  return all;
}

// Returns a copy with zeros in every row of the first input, or in all rows but the last.
Tensors inputs_of(const ZeroCase& c, Defaults where, bool all_zero) {
  Tensors inputs = test::inputs_of({.name = c.name, .shapes = c.shapes, .f = {}}, where);
  const std::int64_t first = c.shapes[0][0];
  const Tensor zero = zeros(c.shapes[0], where);
  inputs[0] = all_zero ? zero : concat({slice(zero, 0, 0, first - 1), slice(inputs[0], 0, first - 1, first)}, 0);
  return inputs;
}

bool finite(const Tensor& x) {
  for (const double value : x.values())
    if (!std::isfinite(value)) return false;
  return true;
}

// Checks the value, the first-order gradients from the fused backward pass, the same gradients from a recorded backward
// pass, and the second-order gradients.
struct Results {
  Tensor value;
  Tensors plain, recorded, second;
};

Results results_of(const ZeroCase& c, Defaults where, bool all_zero, double eps, Input input) {
  Tensors leaves;
  for (const Tensor& x : inputs_of(c, where, all_zero)) leaves.push_back(variable(x));
  const Tensor y = c.f(leaves, eps, input), dy = random_normal(y.shape(), 3, "cotangent", where);
  Results r{y.detach(), grad(y, leaves, {.cotangent = dy}), {}, {}};
  Tensor total = zeros({}, where);
  const Tensors recorded = grad(y, leaves, {.create_graph = true, .cotangent = dy});
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    r.recorded.push_back(recorded[i].detach());
    total = total + sum(recorded[i] * random_normal(recorded[i].shape(), 3, fmt::format("direction {}", i), where));
  }
  if (total.requires_grad()) r.second = grad(total, leaves);
  return r;
}

void check_everything(Device device) {
  const RandomScope random({.seed = 11, .step = 3});
  for (const ZeroCase& c : zero_cases())
    for (const auto& [dtype, input, tolerance] : {std::tuple(DType::f64, Input::plain, 1e-9),
                                                  {DType::f32, Input::plain, 2e-4},
                                                  {DType::f32, Input::bf16, 0.05}})
      for (const bool all_zero : {true, false})
        for (const double eps : {1e-6, least_eps}) {
          CAPTURE(c.name, enum_name(dtype), static_cast<int>(input), all_zero, eps);
          const Defaults where{dtype, device};
          const Results r = results_of(c, where, all_zero, eps, input),
                        exact = results_of(c, reference_f64, all_zero, eps, Input::plain);
          const auto agrees = [&, tolerance = tolerance](const Tensor& got, const Tensor& wanted) {
            CHECK(finite(got));
            CHECK(relative_error(got.values(), wanted.values()) < tolerance);
          };
          agrees(r.value, exact.value);
          CHECK(r.second.size() == exact.second.size());
          for (std::size_t i = 0; i < r.plain.size(); ++i) {
            CAPTURE(i);
            agrees(r.plain[i], exact.plain[i]);
            agrees(r.recorded[i], exact.plain[i]);
            if (i < r.second.size()) agrees(r.second[i], exact.second[i]);
          }
          if (!all_zero) continue;
          const Tensors in = inputs_of(c, where, true);
          agrees(r.value, c.value(in, eps));
          if (c.gradient)
            agrees(r.plain[0], c.gradient(in, eps, random_normal(r.value.shape(), 3, "cotangent", where)));
        }
  CHECK(live_nodes() == 0);
}

}  // namespace

TEST_CASE("rows of zeros and queries without keys have the values in ops.h and finite gradients on the cpu backends") {
  check_everything(Device::reference);
  check_everything(Device::cpu);
}

TEST_CASE("rows of zeros and queries without keys have the values in ops.h and finite gradients on cuda") {
  PLUMB_REQUIRE_CUDA();
  check_everything(Device::cuda);
}

TEST_CASE("gradients at rows of zeros and queries without keys agree with finite differences") {
  const RandomScope random({.seed = 11, .step = 3});
  for (const ZeroCase& c : zero_cases()) {
    CAPTURE(c.name);
    const auto f = [&](const Tensors& in) { return c.f(in, 0.5, Input::plain); };
    check_gradients(f, inputs_of(c, reference_f64, true), {.order = 2, .tolerance = 2e-6});
    SUCCEED();
  }
}

TEST_CASE("an eps that would turn a row of zeros into NaN is refused") {
  const Tensor x = zeros({2, 3}), weight = ones({3}), bias = zeros({3}), matrix = ones({4, 3}),
               images = zeros({2, 3, 1, 1});
  const Tensor none = zeros({4});
  const std::string expected = "expected a finite eps of at least 1e-12, got ";
  for (const double eps : {0.0, 1e-13, -1e-6, std::nan(""), HUGE_VAL}) {
    CAPTURE(eps);
    CHECK_THAT(error_of([&] { layer_norm(x, weight, bias, eps); }), contains("[layer_norm] " + expected));
    CHECK_THAT(error_of([&] { rms_norm(x, weight, eps); }), contains("[rms_norm] " + expected));
    CHECK_THAT(error_of([&] {
                 linear(x, matrix, {}, {.norm = {weight, bias, eps}});
               }),
               contains("[linear] " + expected));
    CHECK_THAT(error_of([&] {
                 linear(x, matrix, none, {.norm = {weight, bias, eps}, .gelu = Gelu::erf});
               }),
               contains("[linear] " + expected));
    CHECK_THAT(error_of([&] { batch_norm2d(images, weight, bias, eps); }), contains("[batch_norm2d] " + expected));
  }
}
