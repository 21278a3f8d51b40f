// Calls ops with random shapes, axes and numbers, some of them huge or negative. A call may only throw Error or
// OutOfMemory. Its results, its gradients and its second derivatives must be those of the reference backend.
#include <algorithm>
#include <limits>
#include <random>
#include <span>
#include <string>

#include "autograd/node.h"
#include "autograd/ops/linear_fusion.h"
#include "core/random.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"
#include "tests/support/outcome.h"

using namespace plumb;
using namespace plumb::test;

namespace op_fuzz {
namespace {

// Decodes a call from bytes. After the last byte, all decoded numbers are 0.
class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> bytes, Defaults where) : bytes_(bytes), where_(where) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t b = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return b;
  }
  int below(int n) { return byte() % n; }
  bool rarely() { return byte() < 12; }
  Defaults where() const { return where_; }

  // A number, mostly from -2 to 7.
  std::int64_t number() {
    static constexpr std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::max(),
                                                std::numeric_limits<std::int64_t>::min(),
                                                std::numeric_limits<std::int64_t>::max() - 7,
                                                std::numeric_limits<std::int64_t>::max() / 3 * 2,
                                                std::int64_t{1} << 62,
                                                -(std::int64_t{1} << 62),
                                                std::int64_t{1} << 59,
                                                std::int64_t{1} << 40,
                                                (std::int64_t{1} << 42) + 1,
                                                -(std::int64_t{1} << 40)};
    if (rarely()) return extremes[below(std::size(extremes))];
    return below(10) - 2;
  }
  // A number that an op can work with: mostly from 0 to 5.
  std::int64_t count() { return rarely() ? number() : below(6); }
  int axis(const Shape& shape) {
    if (rarely()) return below(20) - 10;
    return shape.rank() == 0 ? 0 : below(2 * shape.rank()) - shape.rank();
  }
  Axes axes(const Shape& shape) {
    Axes axes;
    for (int n = below(4); n > 0; --n) axes.push_back(axis(shape));
    return axes;
  }
  // An extent from 0 to 5. A shape with an extent of 0 may have an extent of 2^40, which no memory could hold
  // otherwise.
  std::int64_t extent() { return below(6); }
  Shape shape(int least_rank = 0, int most_rank = 4) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(least_rank + below(most_rank - least_rank + 1)));
    for (std::int64_t& d : dims) d = extent();
    if (!dims.empty() && byte() < 24) {
      dims[static_cast<std::size_t>(below(static_cast<int>(dims.size())))] = std::int64_t{1} << 40;
      dims[static_cast<std::size_t>(below(static_cast<int>(dims.size())))] = 0;
    }
    return Shape(dims);
  }
  // The same shape, or one that broadcasts to it, or rarely another one.
  Shape like(const Shape& shape) {
    if (rarely()) return this->shape();
    std::vector<std::int64_t> dims(shape.begin() + (shape.rank() > 0 ? below(3) % (shape.rank() + 1) : 0), shape.end());
    for (std::int64_t& d : dims)
      if (byte() < 40) d = 1;
    return Shape(dims);
  }
  // A variable of normal numbers, which counts as an input of the call.
  Tensor variable(const Shape& shape) {
    inputs_.push_back(plumb::variable(random_normal(shape, byte(), "fuzz", where_)));
    return inputs_.back();
  }
  Tensor variable() { return variable(shape()); }
  // Indices, mostly below `extent`.
  Tensor index(const Shape& shape, std::int64_t extent) {
    check(shape.numel() < 4096, "[fuzz] expected fewer than 4096 indices, got {}", shape);
    std::vector<std::int64_t> values(static_cast<std::size_t>(shape.numel()));
    for (std::int64_t& v : values) v = extent > 0 ? byte() % extent : 0;
    if (rarely() && !values.empty()) values.front() = number();
    return integers(values, shape, where_.device);
  }
  Tensor mask(const Shape& shape) { return greater(random_normal(shape, byte(), "mask", where_), 0); }

  const Tensors& inputs() const { return inputs_; }

 private:
  std::span<const std::uint8_t> bytes_;
  Defaults where_;
  Tensors inputs_;
};

using Op = Tensors (*)(Decoder&);

Tensors elementwise(Decoder& d) {
  static constexpr Tensor (*ops[])(const Tensor&) = {exp,   expm1, log, log1p, sin,   cos,   tanh,    erf,  sqrt,
                                                     rsqrt, relu,  abs, sign,  floor, round, sigmoid, silu, softplus};
  return {ops[d.below(std::size(ops))](d.variable())};
}
Tensors with_number(Decoder& d) {
  const Tensor x = d.variable();
  const auto c = static_cast<double>(d.number() % 10);
  switch (d.below(5)) {
    case 0:
      return {x + c};
    case 1:
      return {x * c};
    case 2:
      return {pow(x * x + 0.5, c)};
    case 3:
      return {clamp(x, c, 1)};
    default:
      return {gelu(x, c > 0 ? Gelu::erf : Gelu::tanh), cast(cast(x, DType::f64), x.dtype()), clone(x), isnan(x)};
  }
}
Tensors binary(Decoder& d) {
  const Shape s = d.shape();
  const Tensor a = d.variable(s), b = d.variable(d.like(s));
  switch (d.below(9)) {
    case 0:
      return {a + b};
    case 1:
      return {a - b};
    case 2:
      return {a * b};
    case 3:
      return {a / (b * b + 1)};
    case 4:
      return {maximum(a, b)};
    case 5:
      return {minimum(a, b)};
    case 6:
      return {pow(a * a + 0.5, b)};
    case 7:
      return {less(a, b), greater_equal(a, b), equal(a, b)};
    default:
      return {where(d.mask(d.like(s)), a, b)};
  }
}
Tensors reduction(Decoder& d) {
  static constexpr Tensor (*ops[])(const Tensor&, const Axes&, bool) = {sum,  mean,      prod, max, min,
                                                                        norm, logsumexp, any,  all};
  const Tensor x = d.variable();
  const Axes axes = d.axes(x.shape());
  const bool keep = d.below(2) == 1;
  if (d.below(5) == 0) return {d.below(2) ? var(x, axes, keep, d.below(3)) : stddev(x, axes, keep, d.below(3))};
  return {ops[d.below(std::size(ops))](x, axes, keep)};
}
Tensors along_axis(Decoder& d) {
  const Tensor x = d.variable();
  const int axis = d.axis(x.shape());
  const bool flag = d.below(2) == 1;
  switch (d.below(7)) {
    case 0:
      return {cumsum(x, axis)};
    case 1: {
      const Ordered o = sort(x, axis, flag);
      return {o.values, o.indices};
    }
    case 2: {
      const Ordered o = topk(x, d.count(), axis, flag);
      return {o.values, o.indices};
    }
    case 3:
      return {argsort(x, axis, flag)};
    case 4:
      return {flag ? argmax(x, axis, true) : argmin(x, axis)};
    case 5:
      return {softmax(x, axis)};
    default:
      return {log_softmax(x, axis)};
  }
}
Tensors shapes(Decoder& d) {
  const Tensor x = d.variable();
  switch (d.below(8)) {
    case 0: {
      const std::int64_t a = d.number(), b = d.number(), c = d.number();
      return {d.below(2) ? reshape(x, {a, b, c}) : reshape(x, {a, -1, c})};
    }
    case 1:
      return {permute(x, d.axes(x.shape()))};
    case 2:
      return {transpose(x, d.axis(x.shape()), d.axis(x.shape()))};
    case 3:
      return {squeeze(x), squeeze(x, d.axes(x.shape()))};
    case 4:
      return {unsqueeze(x, d.axis(x.shape()))};
    case 5:
      return {flatten(x, d.axis(x.shape()), d.axis(x.shape()))};
    case 6:
      return {broadcast_to(x, d.shape())};
    default:
      return {sum_to(x, d.like(x.shape()))};
  }
}
Tensors joins(Decoder& d) {
  Tensors parts;
  const Shape s = d.shape();
  const bool stacks = d.below(3) == 0;
  const int axis = d.axis(s);
  for (int n = d.below(4); n > 0; --n)
    parts.push_back(d.variable(stacks || s.rank() == 0 || d.rarely() ? s : s.with(axis, d.count())));
  return {stacks ? stack(parts, axis) : concat(parts, axis)};
}
Tensors parts(Decoder& d) {
  const Tensor x = d.variable();
  const int axis = d.axis(x.shape());
  switch (d.below(6)) {
    case 0:
      return unbind(x, axis);
    case 1:
      return chunk(x, d.count(), axis);
    case 2:
      return split(x, d.count(), axis);
    case 3: {
      std::vector<std::int64_t> sizes;
      for (int n = d.below(4); n > 0; --n) sizes.push_back(d.count());
      return split(x, sizes, axis);
    }
    case 4:
      return {slice(x, axis, d.number(), d.number())};
    default:
      return {select(x, axis, d.number())};
  }
}
Tensors grows(Decoder& d) {
  const Tensor x = d.variable(d.shape(0, 3));
  switch (d.below(4)) {
    case 0: {
      std::vector<std::pair<std::int64_t, std::int64_t>> widths;
      for (int n = x.shape().rank() + d.rarely(); n > 0; --n) widths.emplace_back(d.count(), d.count());
      return {pad(x, widths, 1.5)};
    }
    case 1: {
      std::vector<std::int64_t> repeats;
      for (int n = x.shape().rank() + d.below(2); n > 0; --n) repeats.push_back(d.count());
      return {repeat(x, repeats)};
    }
    case 2:
      return {repeat_interleave(x, d.count(), d.axis(x.shape()))};
    default:
      return {diag(x, d.number())};
  }
}
Tensors moves(Decoder& d) {
  const Tensor x = d.variable();
  switch (d.below(5)) {
    case 0:
      return {flip(x, d.axes(x.shape()))};
    case 1:
      return {roll(x, d.number(), d.axis(x.shape()))};
    case 2:
      return {tril(x, d.number())};
    case 3:
      return {triu(x, d.number())};
    default:
      return {diag(x, d.number()), trace(x)};
  }
}
Tensors by_index(Decoder& d) {
  const Tensor x = d.variable();
  const int axis = d.axis(x.shape());
  const std::int64_t extent = x.shape().rank() > 0 ? x.shape()[x.shape().axis(axis)] : 0;
  switch (d.below(5)) {
    case 0:
      return {gather(x, d.index(d.shape(0, 2), x.shape().rank() > 0 ? x.dim(0) : 0))};
    case 1:
      return {index_select(x, axis, d.index(d.shape(0, 2), extent))};
    case 2:
      return {embedding(d.index(d.shape(0, 2), x.shape().rank() > 0 ? x.dim(0) : 0), x)};
    case 3:
      return {take_along_axis(x, d.index(x.shape().with(axis, d.count()), extent), axis)};
    default: {
      const Shape s = x.shape().with(axis, d.count());
      return {scatter_add(x, axis, d.index(s, extent), d.variable(s))};
    }
  }
}
Tensors makers(Decoder& d) {
  const std::int64_t a = d.number(), b = d.number(), c = d.number();
  switch (d.below(8)) {
    case 0:
      return {arange(a, b, c, d.where().device)};
    case 1:
      return {arange(static_cast<double>(a), static_cast<double>(b), static_cast<double>(c), d.where())};
    case 2:
      return {linspace(0, 1, a, d.where())};
    case 3:
      return {eye(a, b, d.where())};
    case 4:
      return {random_permutation(a, 1, "fuzz", d.where().device)};
    case 5:
      return {one_hot(d.index(d.shape(0, 2), 5), a, d.where().dtype)};
    case 6:
      return {random_uniform(Shape{a, b}, 0, 1, 3, "fuzz", d.where())};
    default:
      return {full(Shape{a, b, c}, 2, d.where())};
  }
}
Tensors products(Decoder& d) {
  const std::int64_t M = d.extent(), K = d.extent(), N = d.extent();
  switch (d.below(5)) {
    case 0: {
      const Shape batch = d.shape(0, 2);
      const bool ta = d.below(2) == 1, tb = d.below(2) == 1;
      return {matmul(d.variable(batch.appended(ta ? K : M).appended(ta ? M : K)),
                     d.variable(d.like(batch).appended(tb ? N : K).appended(tb ? K : N)), ta, tb)};
    }
    case 1:
      return {matmul(d.variable(), d.variable(), d.below(2) == 1, d.below(2) == 1)};
    case 2:
      return {dot(d.variable({K}), d.variable({K})), outer(d.variable({M}), d.variable({N}))};
    case 3: {
      static constexpr const char* letters[] = {"ij,jk->ik", "ij,jk",     "ij,ij->",    "ij,kj->ikj",
                                                "ii,jk->i",  "ij,jk->ki", "ij,kj->jik", "ij,kl->il"};
      return {einsum(letters[d.below(std::size(letters))], d.variable({M, K}),
                     d.variable(d.below(2) ? Shape{K, N} : Shape{M, K}))};
    }
    default: {
      const Tensor x = d.variable(d.shape(0, 2).appended(K)), w = d.variable({N, K}),
                   b = d.below(2) ? d.variable({N}) : Tensor();
      switch (d.below(4)) {
        case 0:
          return {linear(x, w, b)};
        case 1:
          return {linear(x, w, b, {.norm = {d.variable({K}), d.variable({K}), 1e-3}})};
        case 2:
          return {linear(x, w, b, {.gelu = Gelu::erf})};
        default:
          return {linear(
              x, w, b,
              {.sum = ResidualSum{d.variable(x.shape().with(-1, N)), d.variable(d.below(2) ? Shape{1} : Shape{N})}})};
      }
    }
  }
}
Tensors rows(Decoder& d) {
  const Tensor x = d.variable();
  const Shape width{x.shape().rank() > 0 && !d.rarely() ? x.dim(-1) : d.extent()};
  switch (d.below(6)) {
    case 0:
      return {layer_norm(x, d.variable(width), d.variable(width), 1e-2)};
    case 1:
      return {rms_norm(x, d.variable(width), 1e-2)};
    case 2:
      return {dyt(x, d.variable({1}), d.variable(width), d.variable(width))};
    case 3:
      return {dropout(x, 0.3)};
    case 4:
      return {
          gated_residual(x, d.variable(d.rarely() ? d.shape() : x.shape()), d.variable(d.below(2) ? Shape{1} : width))};
    default: {
      const Shape samples{x.shape().rank() > 0 ? x.dim(0) : 1};
      return {gated_residual(x, d.variable(x.shape()), {}, random_normal(samples, 4, "rows", d.where()))};
    }
  }
}
Tensors losses(Decoder& d) {
  const Tensor x = d.variable(), y = d.variable(d.rarely() ? d.shape() : x.shape());
  switch (d.below(6)) {
    case 0:
      return {mse_loss(x, y), l1_loss(x, y)};
    case 1:
      return {huber_loss(x, y, 0.5)};
    case 2:
      return {binary_cross_entropy_with_logits(x, sigmoid(y))};
    case 3:
      return {kl_div(log_softmax(x), softmax(y))};
    case 4:
      return {soft_cross_entropy(x, softmax(y.detach()))};
    default:
      return {cross_entropy(x, d.index(x.shape().without(-1), x.dim(-1)), d.below(2) * 0.1)};
  }
}
Tensors images(Decoder& d) {
  const Tensor x = d.variable(d.shape(4, 4));
  const std::int64_t stride = d.count(), padding = d.below(3) ? d.below(3) : d.count(), O = d.extent();
  switch (d.below(4)) {
    case 0:
      return {max_pool2d(x, {.kernel = d.count(), .stride = stride, .padding = padding})};
    case 1:
      return {avg_pool2d(x, {.kernel = d.count(), .stride = stride, .padding = padding})};
    case 2:
      return {batch_norm2d(x, d.variable({x.dim(1)}), d.variable({x.dim(1)}), 1e-2)};
    default:
      return {conv2d(x, d.variable({O, d.rarely() ? O : x.dim(1), 1 + d.below(3), 1 + d.below(3)}),
                     d.below(2) ? d.variable({O}) : Tensor(), {.stride = stride, .padding = padding})};
  }
}
Tensors attentions(Decoder& d) {
  const std::int64_t B = d.extent(), H = d.extent(), N = d.extent(), M = d.rarely() ? d.shape(1, 1)[0] : d.extent(),
                     E = d.extent();
  AttentionMasking o{.drop_key = d.below(2) * 0.5,
                     .dropout = d.below(3) ? 0 : 0.25,
                     .empty = static_cast<EmptyRow>(d.below(3)),
                     .causal = d.below(3) == 0};
  if (d.rarely()) o.drop_shape = DropShape::block, o.grid = {d.number(), d.number()}, o.drop_window = d.number();
  switch (d.below(4)) {
    case 0:
      return {attention(d.variable({B, H, N, E}), d.variable({B, H, M, E}), d.variable({B, H, M, E}), o)};
    case 1: {
      const std::int64_t heads = d.rarely() ? d.number() : H;
      return {attention_qkv(d.variable({B, N, 3 * H * E}), heads, o)};
    }
    case 2: {
      const std::int64_t heads = d.rarely() ? d.number() : H;
      return {attention_q_kv(d.variable({B, N, H * E}), d.variable({B, M, 2 * H * E}), heads, o)};
    }
    default:
      return {attention_talking(d.variable({B, H, N, E}), d.variable({B, H, M, E}), d.variable({B, H, M, E}),
                                d.variable({H, H}), d.variable({H}), d.variable({H, H}), d.variable({H}), o)};
  }
}

constexpr Op ops[] = {elementwise, with_number, binary, reduction, along_axis, shapes, joins,  parts,     grows,
                      moves,       by_index,    makers, products,  rows,       losses, images, attentions};

// The results of a call, then the gradients of its inputs, then the second derivatives.
Tensors called(std::span<const std::uint8_t> bytes, Defaults where) {
  const RandomScope random({.seed = 5, .step = 2});
  Decoder d(bytes, where);
  Tensors all = ops[d.below(std::size(ops))](d);
  Tensor total = zeros({}, where);
  for (Tensor& y : all) {
    if (y.requires_grad()) total = total + sum(y * y);
    y = y.detach();
  }
  if (!total.requires_grad()) return all;
  const Tensors first = grad(total, d.inputs(), {.create_graph = true});
  Tensor again = zeros({}, where);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].shape() == d.inputs()[i].shape());
    all.push_back(first[i].detach());
    again = again + sum(first[i] * 0.5);
  }
  if (!again.requires_grad()) return all;
  for (const Tensor& g : grad(again, d.inputs())) all.push_back(g);
  return all;
}

// Calls the op that the bytes encode on a device and on the reference backend. Returns whether the op gave a result.
bool fuzz_one(std::span<const std::uint8_t> bytes, Device device) {
  INFO("bytes " << fmt::format("{}", fmt::join(bytes, ", ")));
  const Outcome wanted = outcome_of([&] { return called(bytes, reference_f32); }),
                got = outcome_of([&] {
                  return called(bytes, {DType::f32, device});
                });
  check_agreement(got, wanted, 2e-3);
  return !wanted.refused;
}

void fuzz(Device device) {
  std::mt19937 random(20261130);
  int results = 0;
  constexpr int calls = 6000;
  for (int call = 0; call < calls; ++call) {
    std::vector<std::uint8_t> bytes(64);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
    bytes[0] = static_cast<std::uint8_t>(call % std::size(ops));
    results += fuzz_one(bytes, device);
  }
  CHECK(results > calls / 3);
  CHECK(live_nodes() == 0);
}

}  // namespace
}  // namespace op_fuzz

TEST_CASE("random calls of ops give the results of the reference backend or an error on cpu", "[once]") {
  op_fuzz::fuzz(Device::cpu);
}

TEST_CASE("random calls of ops give the results of the reference backend or an error on cuda", "[once]") {
  PLUMB_REQUIRE_CUDA();
  op_fuzz::fuzz(Device::cuda);
}
