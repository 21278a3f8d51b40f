// Mistakes with ops.
#include <cmath>

#include "autograd/ops/linear_fusion.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const Tensor matrix = ones({2, 3}), labels = integers({0, 1}, {2}), undefined;

}  // namespace

TEST_CASE("misuse: an op on an undefined tensor") {
  using Op = std::function<Tensor(const Tensor&)>;
#define OP(name, ...)                                           \
  {                                                             \
    name, [](const Tensor& x) -> Tensor { return __VA_ARGS__; } \
  }
  const std::vector<std::pair<const char*, Op>> ops{
      OP("abs", abs(x)),
      OP("sign", sign(x)),
      OP("log1p", log1p(x)),
      OP("sigmoid", sigmoid(x)),
      OP("silu", silu(x)),
      OP("softplus", softplus(x)),
      OP("clamp", clamp(x, 0, 1)),
      OP("add", x + 1),
      OP("add", matrix + x),
      OP("pow", pow(x, 2)),
      OP("cast", cast(x, DType::f64)),
      OP("equal", equal(x, matrix)),
      OP("less", matrix < x),
      OP("greater", x > 0),
      OP("where", where(x, matrix, matrix)),
      OP("where", where(matrix > 0, matrix, x)),
      OP("where", where(x, 1, 0)),
      OP("maximum", maximum(x, 0)),
      OP("minimum", minimum(x, 0)),
      OP("sum", sum(x, {0})),
      OP("mean", mean(x)),
      OP("max", max(x, {-1})),
      OP("min", min(x)),
      OP("var", var(x, {0})),
      OP("norm", norm(x)),
      OP("argmax", argmax(x)),
      OP("sum_to", sum_to(x, {1})),
      OP("broadcast_to", broadcast_to(x, {2, 3})),
      OP("reshape", reshape(x, {-1})),
      OP("reshape", reshape(x, matrix.shape())),
      OP("permute", permute(x, {})),
      OP("transpose", transpose(x)),
      OP("concat", concat({x, x}, 0)),
      OP("concat", concat({matrix, x}, 0)),
      OP("stack", stack({x})),
      OP("stack", stack({matrix, x})),
      OP("chunk", chunk(x, 1, 0)[0]),
      OP("slice", slice(x, 0, 0, 1)),
      OP("select", x[0]),
      OP("squeeze", squeeze(x)),
      OP("squeeze", squeeze(x, 0)),
      OP("unsqueeze", unsqueeze(x, 0)),
      OP("flatten", flatten(x)),
      OP("split", split(x, 1)[0]),
      OP("split", split(x, {1, 1})[0]),
      OP("unbind", unbind(x)[0]),
      OP("pad", pad(x, {})),
      OP("repeat", repeat(x, {2})),
      OP("repeat_interleave", repeat_interleave(x, 2, 0)),
      OP("flip", flip(x)),
      OP("roll", roll(x, 1, 0)),
      OP("tril", tril(x)),
      OP("triu", triu(x)),
      OP("diag", diag(x)),
      OP("trace", trace(x)),
      OP("clone", clone(x)),
      OP("index_select", index_select(x, 0, labels)),
      OP("index_select", index_select(matrix, 0, x)),
      OP("embedding", embedding(x, matrix)),
      OP("embedding", embedding(labels, x)),
      OP("take_along_axis", take_along_axis(matrix, x, 0)),
      OP("scatter_add", scatter_add(matrix, 0, x, matrix)),
      OP("scatter_add", scatter_add(matrix, 0, labels, x)),
      OP("cumsum", cumsum(x, 0)),
      OP("sort", sort(x).values),
      OP("argsort", argsort(x)),
      OP("topk", topk(x, 1).values),
      OP("argmin", argmin(x)),
      OP("prod", prod(x)),
      OP("stddev", stddev(x)),
      OP("logsumexp", logsumexp(x)),
      OP("any", any(x)),
      OP("all", all(x, 0)),
      OP("maximum", maximum(matrix, x)),
      OP("minimum", minimum(x, matrix)),
      OP("pow", pow(matrix, x)),
      OP("sin", sin(x)),
      OP("cos", cos(x)),
      OP("expm1", expm1(x)),
      OP("exp", exp(x)),
      OP("floor", floor(x)),
      OP("round", round(x)),
      OP("isnan", isnan(x)),
      OP("isfinite", isfinite(x)),
      OP("allclose", full({}, allclose(matrix, x) ? 1 : 0)),
      OP("where", masked_fill(x, matrix > 0, 1)),
      OP("where", masked_fill(matrix, x, 1)),
      OP("full_like", full_like(x, 1)),
      OP("random_normal_like", random_normal_like(x, 1, "x")),
      OP("one_hot", one_hot(x, 2)),
      OP("dot", dot(x, x)),
      OP("dot", dot(Tensors{matrix}, Tensors{x})),
      OP("outer", outer(ones({2}), x)),
      OP("einsum", einsum("ij,jk", matrix, x)),
      OP("max_pool2d", max_pool2d(x, {})),
      OP("avg_pool2d", avg_pool2d(x, {})),
      OP("mse_loss", mse_loss(matrix, x)),
      OP("l1_loss", l1_loss(x, matrix)),
      OP("huber_loss", huber_loss(matrix, x)),
      OP("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(matrix, x)),
      OP("kl_div", kl_div(x, matrix)),
      OP("gather", gather(x, labels)),
      OP("gather", gather(matrix, x)),
      OP("matmul", matmul(matrix, x)),
      OP("linear", linear(x, matrix)),
      OP("linear", linear(matrix, x)),
      OP("linear", linear(matrix, matrix, {}, {.norm = {x, ones({3}), 1e-6}})),
      OP("linear", linear(matrix, matrix, {}, {.sum = ResidualSum{x}})),
      OP("conv2d", conv2d(x, ones({1, 1, 1, 1}))),
      OP("conv2d", conv2d(ones({1, 1, 2, 2}), x)),
      OP("batch_norm2d", batch_statistics(x).first),
      OP("batch_norm2d", batch_norm2d(ones({1, 1, 2, 2}), x, ones({1}), 1e-5)),
      OP("gelu", gelu(x)),
      OP("softmax", softmax(x)),
      OP("log_softmax", log_softmax(x, 0)),
      OP("layer_norm", layer_norm(matrix, x, ones({3}), 1e-6)),
      OP("layer_norm", layer_norm(matrix, ones({3}), x, 1e-6)),
      OP("rms_norm", rms_norm(matrix, x, 1e-6)),
      OP("dyt", dyt(matrix, x, ones({3}), ones({3}))),
      OP("attention", attention(x, ones({1, 1, 2, 2}), ones({1, 1, 2, 2}))),
      OP("attention", attention(ones({1, 1, 2, 2}), ones({1, 1, 2, 2}), x)),
      OP("attention_qkv", attention_qkv(x, 1)),
      OP("mix_heads", mix_heads(ones({1, 1, 2, 2}), x, ones({1}))),
      OP("cross_entropy", cross_entropy(x, labels)),
      OP("cross_entropy", cross_entropy(matrix, x)),
      OP("soft_cross_entropy", soft_cross_entropy(matrix, x)),
      OP("accuracy", full({}, accuracy(x, labels))),
      OP("accuracy", full({}, accuracy(matrix, x))),
      OP("dropout", dropout(x, 0.5)),
      OP("gated_residual", gated_residual(matrix, x)),
      OP("subtract", x - matrix),
      OP("multiply", x * 2),
      OP("divide", matrix / x),
      OP("relu", relu(x)),
      OP("log_softmax", log_softmax(x)),
      OP("linear", linear(matrix, matrix, {}, {.norm = {.weight = ones({3})}})),
      OP("batch_norm2d", batch_norm2d(x, ones({3}), ones({3}), ones({3}), ones({3}), 1e-5)),
      OP("rms_norm", rms_norm(x, ones({3}), 1e-6)),
      OP("layer_norm", layer_norm(x, ones({3}), ones({3}), 1e-6)),
      OP("dyt", dyt(x, ones({1}), ones({3}), ones({3}))),
      OP("mix_heads", mix_heads(x, ones({1, 1}), ones({1}))),
      OP("cross_entropy", cross_entropy(x, integers({}, {0}))),
      OP("dropout", dropout(x, 0)),
      OP("gated_residual", gated_residual(x, matrix)),
      OP("sum", sum(x)),
      OP("max", max(x))};
#undef OP
  for (const auto& [name, op] : ops) {
    INFO(name);
    CHECK_REFUSED(op(undefined), fmt::format("[{}] {}", name, got_undefined));
  }
}

TEST_CASE("misuse: labels given to ops of floats") {
  CHECK_REFUSED(sigmoid(labels), "[sigmoid] expected f32 or f64, got i64 [2]: cast() it to f32 first");
  CHECK_REFUSED(silu(labels), "[silu] expected f32 or f64, got i64");
  CHECK_REFUSED(softplus(labels), "[softplus] expected f32 or f64, got i64");
  CHECK_REFUSED(abs(labels), "[abs] expected f32 or f64, got i64");
  CHECK_REFUSED(clamp(labels, 0, 1), "[clamp] expected f32 or f64, got i64");
  CHECK_REFUSED(mean(labels), "[mean] expected f32 or f64, got i64");
  CHECK_REFUSED(var(labels), "[var] expected f32 or f64, got i64");
  CHECK_REFUSED(norm(labels), "[norm] expected f32 or f64, got i64");
  CHECK_REFUSED(argmax(labels), "[argmax] expected f32 or f64, got i64");
  CHECK_REFUSED(sort(labels), "[sort] expected f32 or f64, got i64 [2]: cast() it to f32 first");
  CHECK_REFUSED(cumsum(labels, 0), "[cumsum] expected f32 or f64, got i64");
  CHECK_REFUSED(prod(labels), "[prod] expected f32 or f64, got i64");
  CHECK_REFUSED(maximum(labels, labels), "[maximum] expected f32 or f64, got i64");
  CHECK_REFUSED(masked_fill(labels, labels > 0, 1), "[where] expected f32 or f64, got i64");
  CHECK_REFUSED(mse_loss(labels, labels), "[mse_loss] expected f32 or f64, got i64");
  CHECK_REFUSED(sum(matrix > 0), "[sum] expected f32 or f64, got u8 [2, 3]: cast() it to f32 first");
  CHECK_REFUSED(matrix * (matrix > 0), "[multiply] expected f32 or f64, got u8 [2, 3]: cast() it to f32 first");
}

TEST_CASE("misuse: reshape to a shape of other elements, or to a shape that does not follow from the elements") {
  CHECK_REFUSED(reshape(matrix, {4, -1}),
                "[reshape] expected extents other than -1 whose product divides the 6 elements of [2, 3], got [4, -1]");
  CHECK_REFUSED(reshape(matrix, {-1, -1}), "[reshape] expected at most one extent of -1, got [-1, -1]");
  CHECK_REFUSED(reshape(zeros({0, 3}), {0, -1}),
                "[reshape] expected extents other than -1 whose product divides the 0 elements of [0, 3], got [0, -1]");
  CHECK_REFUSED(reshape(matrix, {-2, -1}), "[reshape] expected extents of at least 0, or one of -1, got [-2, -1]");
  CHECK_REFUSED(reshape(matrix, {-2, -3}), "[reshape] expected extents of at least 0, or one of -1, got [-2, -3]");
  CHECK_REFUSED(reshape(matrix, {2, 4}), "[reshape] expected a shape of 6 elements like [2, 3], got [2, 4]");
}

TEST_CASE("misuse: an axis out of range") {
  CHECK_REFUSED(sum(matrix, {2}), "[sum] expected an axis in -2..1 of shape [2, 3], got 2");
  CHECK_REFUSED(mean(matrix, {-3}), "[mean] expected an axis in -2..1 of shape [2, 3], got -3");
  CHECK_REFUSED(max(matrix, {5}), "[max] expected an axis in -2..1");
  CHECK_REFUSED(min(matrix, {5}), "[min] expected an axis in -2..1");
  CHECK_REFUSED(var(matrix, {5}), "[var] expected an axis in -2..1");
  CHECK_REFUSED(norm(matrix, {5}), "[norm] expected an axis in -2..1");
  CHECK_REFUSED(argmax(matrix, 2), "[argmax] expected an axis in -2..1");
  CHECK_REFUSED(stack({matrix}, 3), "[stack] expected an axis in -3..2");
  CHECK_REFUSED(chunk(matrix, 1, 2), "[chunk] expected an axis in -2..1");
  CHECK_REFUSED(concat({matrix, matrix}, 2), "[concat] expected an axis in -2..1");
  CHECK_REFUSED(slice(matrix, 2, 0, 1), "[slice] expected an axis in -2..1");
  CHECK_REFUSED(permute(matrix, {0, 2}), "[permute] expected an axis in -2..1");
  CHECK_REFUSED(transpose(matrix, 0, 2), "[transpose] expected an axis in -2..1");
  CHECK_REFUSED(softmax(matrix, 2), "[softmax] expected an axis in -2..1");
  CHECK_REFUSED(squeeze(matrix, 2), "[squeeze] expected an axis in -2..1");
  CHECK_REFUSED(unsqueeze(matrix, 3), "[unsqueeze] expected an axis in -3..2");
  CHECK_REFUSED(flatten(matrix, 0, 2), "[flatten] expected an axis in -2..1");
  CHECK_REFUSED(split(matrix, 1, 2), "[split] expected an axis in -2..1");
  CHECK_REFUSED(unbind(matrix, 2), "[unbind] expected an axis in -2..1");
  CHECK_REFUSED(flip(matrix, {2}), "[flip] expected an axis in -2..1");
  CHECK_REFUSED(roll(matrix, 1, 2), "[roll] expected an axis in -2..1");
  CHECK_REFUSED(repeat_interleave(matrix, 1, 2), "[repeat_interleave] expected an axis in -2..1");
  CHECK_REFUSED(index_select(matrix, 2, labels), "[index_select] expected an axis in -2..1");
  CHECK_REFUSED(take_along_axis(matrix, labels, 2), "[take_along_axis] expected an axis in -2..1");
  CHECK_REFUSED(scatter_add(matrix, 2, labels, matrix), "[scatter_add] expected an axis in -2..1");
  CHECK_REFUSED(cumsum(matrix, 2), "[cumsum] expected an axis in -2..1");
  CHECK_REFUSED(sort(matrix, 2), "[sort] expected an axis in -2..1");
  CHECK_REFUSED(argsort(matrix, 2), "[argsort] expected an axis in -2..1");
  CHECK_REFUSED(topk(matrix, 1, 2), "[topk] expected an axis in -2..1");
  CHECK_REFUSED(argmin(matrix, 2), "[argmin] expected an axis in -2..1");
  CHECK_REFUSED(prod(matrix, 2), "[prod] expected an axis in -2..1");
  CHECK_REFUSED(stddev(matrix, 2), "[stddev] expected an axis in -2..1");
  CHECK_REFUSED(logsumexp(matrix, 2), "[logsumexp] expected an axis in -2..1");
  CHECK_REFUSED(any(matrix, 2), "[any] expected an axis in -2..1");
  CHECK_REFUSED(all(matrix, 2), "[all] expected an axis in -2..1");
}
TEST_CASE("misuse: an axis of a scalar") {
  CHECK_REFUSED(sum(full({}, 1), {0}), "[sum] expected a tensor with an axis 0, got a scalar");
  CHECK_REFUSED(argmax(full({}, 1)), "[argmax] expected a tensor with an axis -1, got a scalar");
  CHECK_REFUSED(softmax(full({}, 1)), "[softmax] expected a tensor with an axis -1, got a scalar");
  CHECK_REFUSED(transpose(ones({3})), "[transpose] expected an axis in -1..0 of shape [3], got -2");
  CHECK_REFUSED(concat({full({}, 1), full({}, 1)}, 0), "[concat] expected a tensor with an axis 0, got a scalar");
}
TEST_CASE("misuse: a repeated axis") {
  CHECK_REFUSED(var(matrix, {0, -2}), "[var] expected each axis once, got axis -2 twice for shape [2, 3]");
  CHECK_REFUSED(min(matrix, {1, 1}), "[min] expected each axis once");
  CHECK_REFUSED(flip(matrix, {1, -1}), "[flip] expected each axis once, got axis -1 twice for shape [2, 3]");
  CHECK_REFUSED(squeeze(ones({1, 2}), {0, -2}),
                "[squeeze] expected each axis once, got axis -2 twice for shape [1, 2]");
}

TEST_CASE("misuse: reductions of no elements") {
  CHECK_REFUSED(mean(zeros({0, 3}), {0}), "[mean] expected at least one element, got shape [0, 3]");
  CHECK_REFUSED(min(zeros({0})), "[min] expected at least one element, got shape [0]");
  CHECK_REFUSED(max(zeros({0})), "[max] expected at least one element, got shape [0]");
  CHECK_REFUSED(var(zeros({0})), "[var] expected more elements than the correction 0");
  CHECK_REFUSED(argmax(zeros({2, 0})), "[argmax] expected a non-empty axis 1, got shape [2, 0]");
  CHECK_REFUSED(argmin(zeros({2, 0})), "[argmin] expected a non-empty axis 1, got shape [2, 0]");
  CHECK_REFUSED(logsumexp(zeros({2, 0}), -1), "[logsumexp] expected at least one element, got shape [2, 0]");
  CHECK_REFUSED(stddev(zeros({0})), "[stddev] expected more elements than the correction 0");
}
TEST_CASE("misuse: a variance with a correction of at least the number of elements") {
  CHECK_REFUSED(var(ones({4, 1}), {1}, false, 1),
                "[var] expected more elements than the correction 1, got 1 of shape [4, 1]");
  CHECK_REFUSED(var(ones({4}), {}, false, std::nan("")), "[var] expected more elements than the correction nan");
}

TEST_CASE("misuse: chunks of unequal size") {
  CHECK_REFUSED(
      chunk(matrix, 2, 1),
      "[chunk] expected a count that divides the 3 of axis 1 of [2, 3], got 2: use split() for unequal parts");
}
TEST_CASE("misuse: zero or fewer chunks") {
  CHECK_REFUSED(chunk(matrix, 0, 1), "[chunk] expected a count that divides the 3 of axis 1 of [2, 3], got 0");
  CHECK_REFUSED(chunk(matrix, -1, 1), "[chunk] expected a count that divides the 3 of axis 1 of [2, 3], got -1");
}
TEST_CASE("misuse: a stack of nothing") { CHECK_REFUSED(stack({}), "[stack] expected at least one tensor, got none"); }
TEST_CASE("misuse: a stack of different shapes") {
  CHECK_REFUSED(stack({matrix, ones({3, 2})}),
                "[stack] expected tensors of one shape, got [2, 3] and [3, 2]: use concat() for shapes that differ "
                "along an axis");
}
TEST_CASE("misuse: concat of shapes that differ on other axes and of nothing") {
  CHECK_REFUSED(concat({matrix, ones({3, 2})}, 0),
                "[concat] expected shapes that are equal except on axis 0, got [2, 3] and [3, 2]");
  CHECK_REFUSED(concat({}, 0), "[concat] expected at least one tensor, got none");
}
TEST_CASE("misuse: a slice that is out of range or reversed") {
  CHECK_REFUSED(slice(matrix, 1, 2, 4), "[slice] expected 0 <= begin <= end <= 3 on axis 1 of [2, 3], got 2..4");
  CHECK_REFUSED(slice(matrix, 1, 2, 1), "[slice] expected 0 <= begin <= end <= 3");
  CHECK_REFUSED(slice(matrix, 1, -1, 1), "[slice] expected 0 <= begin <= end <= 3");
}

TEST_CASE("misuse: mixed dtypes") {
  CHECK_REFUSED(matrix + ones({2, 3}, f64),
                "[add] expected operands of one dtype, got f32 [2, 3] and f64 [2, 3]: cast() one of them");
  CHECK_REFUSED(matrix < ones({2, 3}, f64),
                "[less] expected operands of one dtype, got f32 [2, 3] and f64 [2, 3]: cast() one of them");
  CHECK_REFUSED(equal(argmax(matrix), ones({2})), "[equal] expected operands of one dtype, got i64 [2] and f32 [2]");
  CHECK_REFUSED(stack({matrix, ones({2, 3}, f64)}), "[stack] expected operands of one dtype");
  CHECK_REFUSED(concat({labels, ones({2})}, 0), "[concat] expected operands of one dtype, got i64 [2] and f32 [2]");
  CHECK_REFUSED(where(matrix > 0, matrix, ones({2, 3}, f64)), "[where] expected operands of one dtype");
}
TEST_CASE("misuse: mixed devices") {
  const Tensor there = ones({2, 3}, reference);
  CHECK_REFUSED(matrix + there, "[add] expected operands on one device, got [2, 3] on cpu and [2, 3] on reference");
  CHECK_REFUSED(matrix >= there, "[greater_equal] expected operands on one device");
  CHECK_REFUSED(stack({matrix, there}), "[stack] expected operands on one device");
  CHECK_REFUSED(where(matrix > 0, there, there),
                "[where] expected a mask on reference like the operands, got one on cpu");
  CHECK_REFUSED(gather(there, labels), "[gather] expected indices on reference like the elements, got indices on cpu");
  CHECK_REFUSED(cross_entropy(there, labels),
                "[cross_entropy] expected labels on reference like the logits, got labels on cpu");
  CHECK_REFUSED(accuracy(there, labels), "[accuracy] expected labels on reference like the logits, got labels on cpu");
}

TEST_CASE("misuse: unfit shapes in a comparison are named in the written order") {
  CHECK_REFUSED(matrix > ones({4}), "[greater] expected shapes that broadcast together, got [2, 3] and [4]");
  CHECK_REFUSED(equal(matrix, ones({3, 2})), "[equal] expected shapes that broadcast together, got [2, 3] and [3, 2]");
}
TEST_CASE("misuse: integers compared with values that they cannot have") {
  CHECK_REFUSED(labels > 0.5,
                "[greater] expected a number that i64 can represent, to compare it with i64 [2], got 0.5");
  CHECK_REFUSED(equal(matrix > 0, 300),
                "[equal] expected a number that u8 can represent, to compare it with u8 [2, 3], got 300");
  CHECK_REFUSED(labels < std::nan(""), "[less] expected a number that i64 can represent");
}

TEST_CASE("misuse: where without a mask") {
  CHECK_REFUSED(where(matrix, matrix, matrix), "[where] expected a u8 mask, got f32 [2, 3]: use a comparison");
  CHECK_REFUSED(where(labels, matrix, matrix), "[where] expected a u8 mask, got i64 [2]");
  CHECK_REFUSED(where(ones({4}) > 0, matrix, matrix),
                "[where] expected shapes that broadcast together, got [4] and [2, 3]");
}

TEST_CASE("misuse: clamp with reversed bounds or without bounds") {
  CHECK_REFUSED(clamp(matrix, 1, 0), "[clamp] expected low <= high, got 1 and 0");
  CHECK_REFUSED(clamp(matrix, std::nan(""), 0), "[clamp] expected low <= high, got nan and 0");
}

TEST_CASE("misuse: accuracy with labels that do not fit the rows") {
  CHECK_REFUSED(accuracy(matrix, integers({0, 1, 2}, {3})),
                "[accuracy] expected i64 labels [2] for logits [2, 3], got i64 [3]");
  CHECK_REFUSED(accuracy(matrix, ones({2})), "[accuracy] expected i64 labels [2] for logits [2, 3], got f32 [2]");
  CHECK_REFUSED(accuracy(matrix, matrix), "[accuracy] expected i64 labels [2] for logits [2, 3], got f32 [2, 3]");
  CHECK_REFUSED(accuracy(zeros({0, 3}), integers({}, {0})), "[accuracy] expected logits [.., classes], got [0, 3]");
}
TEST_CASE("misuse: labels out of range") {
  CHECK_REFUSED(accuracy(matrix, integers({0, 3}, {2})), "[accuracy] expected labels in 0..2, got 3 at 1");
  CHECK_REFUSED(cross_entropy(matrix, integers({-1, 0}, {2})), "[cross_entropy] expected labels in 0..2, got -1 at 0");
  CHECK_REFUSED(gather(matrix, integers({2}, {1})),
                "[gather] expected indices in 0..1 for axis 0 of [2, 3], got 2 at 0");
}
TEST_CASE("misuse: logits in place of labels") {
  CHECK_REFUSED(cross_entropy(matrix, ones({2})),
                "[cross_entropy] expected i64 labels [2] for logits [2, 3], got f32 [2]");
  CHECK_REFUSED(cross_entropy(labels, matrix), "[cross_entropy] expected f32 or f64, got i64 [2]");
  CHECK_REFUSED(gather(matrix, ones({2})), "[gather] expected i64 indices, got f32 [2]");
}

TEST_CASE("misuse: products of unfit shapes") {
  CHECK_REFUSED(matmul(matrix, matrix), "[matmul] expected equal inner extents, got [2, 3] and [2, 3]");
  CHECK_REFUSED(matmul(ones({3}), matrix), "[matmul] expected equal inner extents, got [3] and [2, 3]");
  CHECK_REFUSED(matmul(matrix, ones({2})), "[matmul] expected equal inner extents, got [2, 3] and [2]");
  CHECK_REFUSED(matmul(matrix, full({}, 1)), "[matmul] expected at least one axis each, got [2, 3] and []");
  CHECK_REFUSED(matmul(ones({3}), matrix, true),
                "[matmul] expected at least two axes for a transposed operand, got [3]^T and [2, 3]");
  CHECK_REFUSED(dot(ones({2}), ones({3})), "[dot] expected two vectors of one length, got [2] and [3]");
  CHECK_REFUSED(dot(matrix, matrix), "[dot] expected two vectors of one length, got [2, 3] and [2, 3]");
  CHECK_REFUSED(outer(matrix, ones({3})), "[outer] expected two vectors, got [2, 3] and [3]");
  CHECK_REFUSED(linear(ones({2, 4}), matrix), "[linear] expected");
}

TEST_CASE("misuse: a residual sum of rows without samples") {
  const std::string message = "expected a constant row scale [B] for a branch [B, .., D], got [3] for branch [3]";
  CHECK_REFUSED(gated_residual(ones({3}), ones({3}), {}, ones({3})), "[gated_residual] " + message);
  CHECK_REFUSED(linear(ones({2}), ones({3, 2}), {}, {.sum = ResidualSum{ones({3}), {}, ones({3})}}),
                "[linear] " + message);
}

TEST_CASE("misuse: gradients with a non-finite factor") {
  const Tensor x = variable(matrix);
  const Gradients g = backward(sum(x));
  CHECK_REFUSED(g * std::nan(""), "[gradients] expected a finite factor, got nan");
  CHECK_REFUSED(g / 0, "[gradients] expected a finite factor, got inf");
}

TEST_CASE("misuse: an index out of range names its axis") {
  CHECK_REFUSED(matrix[2], "[select] expected an index in -2..1 for axis 0 of [2, 3], got 2");
  CHECK_REFUSED(matrix[0][-4], "[select] expected an index in -3..2 for axis 0 of [3], got -4");
  CHECK_REFUSED(sum(matrix)[0], "[select] expected a tensor with an axis 0, got a scalar");
  CHECK_REFUSED(index_select(matrix, -1, integers({0, 3})),
                "[index_select] expected indices in 0..2 for axis 1 of [2, 3], got 3 at 1");
  CHECK_REFUSED(index_select(matrix, 0, integers(-1)),
                "[index_select] expected indices in 0..1 for axis 0 of [2, 3], got -1 at 0");
  CHECK_REFUSED(embedding(integers({2}), matrix),
                "[embedding] expected indices in 0..1 for axis 0 of [2, 3], got 2 at 0");
  CHECK_REFUSED(take_along_axis(matrix, integers({{0, 1}, {0, 3}}), 1),
                "[take_along_axis] expected indices in 0..2 for axis 1 of [2, 3], got 3 at 3");
  CHECK_REFUSED(scatter_add(matrix, 0, integers({{0, 2, 0}}), ones({1, 3})),
                "[scatter_add] expected indices in 0..1 for axis 0 of [2, 3], got 2 at 1");
  CHECK_REFUSED(one_hot(integers({1, 5}), 5), "[one_hot] expected indices in 0..4, got 5 at 1");
}
TEST_CASE("misuse: an index of another shape or dtype") {
  CHECK_REFUSED(take_along_axis(matrix, integers({{0}}), 1),
                "[take_along_axis] expected an index with the extents of [2, 3] except on axis 1, got [1, 1]");
  CHECK_REFUSED(take_along_axis(matrix, labels, 1),
                "[take_along_axis] expected an index with the extents of [2, 3] except on axis 1, got [2]");
  CHECK_REFUSED(scatter_add(matrix, 1, integers({{0}, {1}}), matrix),
                "[scatter_add] expected a source of the index's shape [2, 1], got [2, 3]");
  CHECK_REFUSED(index_select(matrix, 0, ones({1})), "[index_select] expected i64 indices, got f32 [1]");
  CHECK_REFUSED(one_hot(ones({1}), 2), "[one_hot] expected i64 indices, got f32 [1]");
  CHECK_REFUSED(one_hot(labels, -1), "[one_hot] expected a number of classes of at least 0, got -1");
  CHECK_REFUSED(embedding(labels, ones({3})), "[embedding] expected a weight [V, D], got [3]");
}
TEST_CASE("misuse: squeeze of an axis whose extent is not 1 and flatten with reversed axes") {
  CHECK_REFUSED(squeeze(matrix, 1), "[squeeze] expected axes of extent 1, got axis 1 of [2, 3]");
  CHECK_REFUSED(flatten(matrix, 1, 0), "[flatten] expected the first axis before the last, got 1 and 0 of [2, 3]");
}
TEST_CASE("misuse: split sizes that do not add up to the axis") {
  CHECK_REFUSED(split(matrix, {1, 1}, 1),
                "[split] expected sizes of at least 0 whose sum is the 3 of axis 1 of [2, 3], got 1, 1");
  CHECK_REFUSED(split(matrix, {4, -1}, 1), "[split] expected sizes of at least 0 whose sum is the 3");
  CHECK_REFUSED(split(matrix, 0), "[split] expected a size of at least 1, got 0");
}
TEST_CASE("misuse: widths and repeats that do not fit the axes or are negative") {
  CHECK_REFUSED(pad(matrix, {{1, 1}}), "[pad] expected a pair of widths for each axis of [2, 3], got 1 pairs");
  CHECK_REFUSED(pad(matrix, {{0, 0}, {0, -1}}),
                "[pad] expected widths of at least 0, got 0 and -1 for axis 1: use slice() to remove elements");
  CHECK_REFUSED(repeat(matrix, {2}), "[repeat] expected a repeat count for each axis of [2, 3], got 1 counts");
  CHECK_REFUSED(repeat(matrix, {2, -1}), "[repeat] expected repeat counts of at least 0, got -1 for axis 1");
  CHECK_REFUSED(repeat_interleave(matrix, -1, 0), "[repeat_interleave] expected a repeat count of at least 0, got -1");
}
TEST_CASE("misuse: tensors that are not matrices") {
  CHECK_REFUSED(tril(ones({3})), "[tril] expected matrices [.., M, N], got [3]");
  CHECK_REFUSED(triu(full({}, 1)), "[triu] expected matrices [.., M, N], got []");
  CHECK_REFUSED(diag(ones({1, 2, 3})), "[diag] expected a vector or a matrix, got [1, 2, 3]");
  CHECK_REFUSED(trace(ones({3})), "[trace] expected a matrix, got [3]");
}
TEST_CASE("misuse: more elements than the tensor has") {
  CHECK_REFUSED(topk(matrix, 4), "[topk] expected a k in 0..3 for axis 1 of [2, 3], got 4");
  CHECK_REFUSED(topk(matrix, -1), "[topk] expected a k in 0..3 for axis 1 of [2, 3], got -1");
}
TEST_CASE("misuse: einsum with wrong arguments") {
  const Tensor other = ones({3, 4});
  CHECK_REFUSED(einsum("ij", matrix, other),
                "[einsum] expected the letters of two operands, as in \"ij,jk->ik\", got \"ij\"");
  CHECK_REFUSED(einsum("ij,jk,kl", matrix, other), "[einsum] expected the letters of two operands");
  CHECK_REFUSED(
      einsum("...j,jk", matrix, other),
      "[einsum] expected only letters, one for each axis, got '.' in \"...j,jk\": name the axes that ... stands for");
  CHECK_REFUSED(einsum("i1,1k", matrix, other), "[einsum] expected only letters, one for each axis, got '1'");
  CHECK_REFUSED(einsum("ii,jk", matrix, other),
                "[einsum] expected each letter once in an operand and in the result, got 'i' twice in \"ii,jk\"");
  CHECK_REFUSED(einsum("ij,jk->iz", matrix, other),
                "[einsum] expected only letters of an operand in the result, got 'z'");
  CHECK_REFUSED(einsum("ijk,kl", matrix, other),
                "[einsum] expected a letter for each axis in \"ijk,kl\", got ijk for [2, 3]");
  CHECK_REFUSED(einsum("ij,ik", matrix, other),
                "[einsum] expected one extent for 'i' in \"ij,ik\", got 2 and 3 for [2, 3] and [3, 4]");
}
TEST_CASE("misuse: pooling with wrong arguments") {
  const Tensor images = ones({1, 1, 4, 4});
  CHECK_REFUSED(max_pool2d(matrix, {}), "[max_pool2d] expected images [B, C, H, W], got [2, 3]");
  CHECK_REFUSED(max_pool2d(images, {.kernel = 0}), "[max_pool2d] expected a kernel of at least 1");
  CHECK_REFUSED(avg_pool2d(images, {.kernel = 2, .stride = -1}),
                "[avg_pool2d] expected a kernel of at least 1 and a stride of at least 1");
  CHECK_REFUSED(max_pool2d(images, {.kernel = 3, .padding = 2}),
                "[max_pool2d] expected a padding of at least 0 and at most half of the kernel's 3, got 2");
  CHECK_REFUSED(
      avg_pool2d(images, {.kernel = 5}),
      "[avg_pool2d] expected an image at least as large as the kernel of 5 after padding by 0, got [1, 1, 4, 4]");
}
TEST_CASE("misuse: losses of unfit pairs do not broadcast") {
  CHECK_REFUSED(mse_loss(matrix, ones({3})),
                "[mse_loss] expected a prediction and a target of one shape, with elements, got [2, 3] and [3]");
  CHECK_REFUSED(l1_loss(zeros({0}), zeros({0})),
                "[l1_loss] expected a prediction and a target of one shape, with elements, got [0] and [0]");
  CHECK_REFUSED(huber_loss(matrix, matrix, 0), "[huber_loss] expected a delta above 0, got 0");
  CHECK_REFUSED(kl_div(full({}, 1), full({}, 1)), "[kl_div] expected rows [.., C], got a scalar");
  CHECK_REFUSED(binary_cross_entropy_with_logits(matrix, ones({2, 3}, f64)),
                "[binary_cross_entropy_with_logits] expected operands of one dtype");
}
TEST_CASE("misuse: allclose with wrong tolerances") {
  CHECK_REFUSED(allclose(matrix, matrix, -1), "[allclose] expected tolerances of at least 0, got -1 and 1e-08");
  CHECK_REFUSED(allclose(matrix, ones({2, 3}, f64)),
                "[allclose] expected operands of one dtype, got f32 [2, 3] and f64 [2, 3]");
}
TEST_CASE("misuse: sequences with a zero or reversed step") {
  CHECK_REFUSED(arange(0, 5, 0), "[arange] expected a step that leads from 0 towards 5, got 0");
  CHECK_REFUSED(arange(5, 0), "[arange] expected a step that leads from 5 towards 0, got 1");
  CHECK_REFUSED(arange(0.0, 5.0, -1), "[arange] expected a step that leads from 0 towards 5, got -1");
  CHECK_REFUSED(arange(0.0, INFINITY), "[arange] expected finite numbers, got 0, inf and a step of 1");
  CHECK_REFUSED(linspace(0, 1, -1), "[linspace] expected a count of at least 0, got -1");
  CHECK_REFUSED(eye(-1), "[eye] expected extents of at least 0, got -1 and -1");
  CHECK_REFUSED(random_uniform({2}, 1, 0, 0, "u"), "[random_uniform] expected finite bounds low <= high, got 1 and 0");
  CHECK_REFUSED(random_permutation(-1, 0, "p"), "[random_permutation] expected a number of at least 0, got -1");
}
TEST_CASE("misuse: ragged lists") {
  CHECK_REFUSED(tensor({{1, 2}, {3}}),
                "[tensor] expected lists of equal length at each depth, got 1 elements at [1] and 2 in the first list "
                "of that depth");
  CHECK_REFUSED(tensor({{{1}, {2}}, {{3}, {4, 5}}}),
                "[tensor] expected lists of equal length at each depth, got 2 elements at [1][1] and 1 in the first "
                "list of that depth");
  CHECK_REFUSED(tensor({{1, 2}, 3}), "[tensor] expected a list at [1], as in the first list, got the number 3");
  CHECK_REFUSED(tensor({1, {2, 3}}), "[tensor] expected a number at [1], as in the first list, got a list of 2");
  CHECK_REFUSED(integers({{1}, {}}),
                "[integers] expected lists of equal length at each depth, got 0 elements at [1] and 1 in the first "
                "list of that depth");
}
