// Shapes, parts and elements chosen by index: values, edge cases, dtypes.
#include <cmath>
#include <numeric>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

const Tensor matrix = tensor({{1, 2, 3}, {4, 5, 6}}), labels = integers({3, 1, 2});

}  // namespace

TEST_CASE("x[i] and select take one index of tensors of any dtype, and count negative indices from the end") {
  CHECK(matrix[1].shape() == Shape{3});
  CHECK(matrix[1].values() == Values{4, 5, 6});
  CHECK(matrix[-2].values() == Values{1, 2, 3});
  CHECK(matrix[1][-1].item() == 6);
  CHECK(matrix[1][-1].shape() == Shape{});
  CHECK(select(matrix, -1, 0).values() == Values{1, 4});
  CHECK(labels[-1].item() == 2);
  CHECK((matrix > 2)[0].values() == Values{0, 0, 1});
}

TEST_CASE("squeeze, unsqueeze and flatten share the buffer") {
  const Tensor y = reshape(matrix, {1, 2, 1, 3});
  CHECK(squeeze(y).shape() == Shape{2, 3});
  CHECK(squeeze(y, -2).shape() == Shape{1, 2, 3});
  CHECK(squeeze(y, {0, 2}).shape() == Shape{2, 3});
  CHECK(squeeze(y, {}).shape() == y.shape());
  CHECK(squeeze(y).array().shares_buffer_with(matrix.array()));
  CHECK(squeeze(ones({1})).shape() == Shape{});
  CHECK(unsqueeze(matrix, 0).shape() == Shape{1, 2, 3});
  CHECK(unsqueeze(matrix, -1).shape() == Shape{2, 3, 1});
  CHECK(unsqueeze(matrix, 1).shape() == Shape{2, 1, 3});
  CHECK(unsqueeze(full({}, 1), 0).shape() == Shape{1});
  CHECK(flatten(y).shape() == Shape{6});
  CHECK(flatten(y, 1).shape() == Shape{1, 6});
  CHECK(flatten(y, 0, -2).shape() == Shape{2, 3});
  CHECK(flatten(y, 1, 1).shape() == y.shape());
  CHECK(flatten(full({}, 1)).shape() == Shape{1});
  CHECK(flatten(zeros({2, 0, 3}), 1).shape() == Shape{2, 0});
}

TEST_CASE("split and unbind give all parts in order") {
  const Tensor row = arange(7);
  const Tensors by_size = split(row, 3);
  REQUIRE(by_size.size() == 3);
  CHECK(by_size[0].values() == Values{0, 1, 2});
  CHECK(by_size[2].values() == Values{6});
  CHECK(split(row, 7).size() == 1);
  CHECK(split(row, 100).size() == 1);
  CHECK(split(integers({}, {0}), 2).empty());
  const Tensors by_sizes = split(matrix, {1, 0, 2}, -1);
  REQUIRE(by_sizes.size() == 3);
  CHECK(by_sizes[0].values() == Values{1, 4});
  CHECK(by_sizes[1].shape() == Shape{2, 0});
  CHECK(by_sizes[2].values() == Values{2, 3, 5, 6});
  const Tensors columns = unbind(matrix, -1);
  REQUIRE(columns.size() == 3);
  CHECK(columns[1].values() == Values{2, 5});
  CHECK(stack(columns, -1).values() == matrix.values());
  CHECK(unbind(zeros({0, 3})).empty());
}

TEST_CASE("pad surrounds a tensor with a number") {
  CHECK(pad(matrix, {{1, 0}, {0, 1}}, 9).values() == Values{9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9});
  CHECK(pad(matrix, {{0, 0}, {1, 0}}).values() == Values{0, 1, 2, 3, 0, 4, 5, 6});
  CHECK(pad(labels, {{1, 1}}, -1).values() == Values{-1, 3, 1, 2, -1});
  CHECK(pad(zeros({0}), {{1, 1}}, 2).values() == Values{2, 2});
  CHECK(pad(matrix, {{0, 0}, {0, 0}}).array().shares_buffer_with(matrix.array()));
  CHECK(pad(full({}, 3), {}).item() == 3);
}

TEST_CASE("repeat repeats a tensor and repeat_interleave its elements") {
  CHECK(repeat(labels, {2}).values() == Values{3, 1, 2, 3, 1, 2});
  CHECK(repeat(matrix, {2, 1}).values() == Values{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  CHECK(repeat(matrix, {1, 2}).values() == Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(repeat(labels, {2, 2}).shape() == Shape{2, 6});
  CHECK(repeat(matrix, {0, 2}).shape() == Shape{0, 6});
  CHECK(repeat(full({}, 3), {2}).values() == Values{3, 3});
  CHECK(repeat_interleave(labels, 2, 0).values() == Values{3, 3, 1, 1, 2, 2});
  CHECK(repeat_interleave(matrix, 2, 0).values() == Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(repeat_interleave(matrix, 0, -1).shape() == Shape{2, 0});
}

TEST_CASE("flip and roll reorder along an axis, around the end") {
  CHECK(flip(matrix).values() == Values{6, 5, 4, 3, 2, 1});
  CHECK(flip(matrix, -1).values() == Values{3, 2, 1, 6, 5, 4});
  CHECK(flip(matrix, {0}).values() == Values{4, 5, 6, 1, 2, 3});
  CHECK(flip(labels).values() == Values{2, 1, 3});
  CHECK(flip(zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(roll(labels, 1, 0).values() == Values{2, 3, 1});
  CHECK(roll(labels, -1, 0).values() == Values{1, 2, 3});
  CHECK(roll(labels, 7, -1).values() == Values{2, 3, 1});
  CHECK(roll(labels, 0, 0).values() == labels.values());
  CHECK(roll(matrix, -1, 1).values() == Values{2, 3, 1, 5, 6, 4});
  CHECK(roll(zeros({0}), 3, 0).shape() == Shape{0});
}

TEST_CASE("tril and triu put 0 beyond a diagonal, even in place of NaN") {
  const Tensor m = reshape(cast(arange(1, 13), DType::f32), {3, 4});
  CHECK(tril(m).values() == Values{1, 0, 0, 0, 5, 6, 0, 0, 9, 10, 11, 0});
  CHECK(tril(m, 1).values() == Values{1, 2, 0, 0, 5, 6, 7, 0, 9, 10, 11, 12});
  CHECK(triu(m, -1).values() == Values{1, 2, 3, 4, 5, 6, 7, 8, 0, 10, 11, 12});
  CHECK(triu(m, 2).values() == Values{0, 0, 3, 4, 0, 0, 0, 8, 0, 0, 0, 0});
  CHECK(triu(full({2, 2}, std::nan(""))).values()[2] == 0);
  CHECK(tril(ones({2, 2, 2})).values() == Values{1, 0, 1, 1, 1, 0, 1, 1});
  CHECK(tril(zeros({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("diag makes a matrix from a vector and a vector from a matrix") {
  CHECK(diag(tensor({1, 2})).values() == Values{1, 0, 0, 2});
  CHECK(diag(tensor({1, 2}), 1).values() == Values{0, 1, 0, 0, 0, 2, 0, 0, 0});
  CHECK(diag(tensor({1, 2}), -1).values() == Values{0, 0, 0, 1, 0, 0, 0, 2, 0});
  CHECK(diag(matrix).values() == Values{1, 5});
  CHECK(diag(matrix, 1).values() == Values{2, 6});
  CHECK(diag(matrix, 2).values() == Values{3});
  CHECK(diag(matrix, -1).values() == Values{4});
  CHECK(diag(matrix, 3).shape() == Shape{0});
  CHECK(diag(matrix, -5).shape() == Shape{0});
  CHECK(diag(tensor({{1, std::nan("")}, {INFINITY, 2}})).values() == Values{1, 2});
  CHECK(trace(matrix).item() == 6);
}

TEST_CASE("clone has a separate buffer") {
  const Tensor copy = clone(matrix);
  CHECK_FALSE(copy.array().shares_buffer_with(matrix.array()));
  CHECK(copy.values() == matrix.values());
  CHECK(clone(labels).values() == labels.values());
  CHECK(clone(matrix > 2).dtype() == DType::u8);
}

TEST_CASE("index_select and embedding: the axes of the index replace the axis") {
  const Tensor index = integers({{2, 0}, {2, 2}});
  CHECK(index_select(matrix, 1, index).shape() == Shape{2, 2, 2});
  CHECK(index_select(matrix, 1, index).values() == Values{3, 1, 3, 3, 6, 4, 6, 6});
  CHECK(index_select(matrix, -2, integers({1})).values() == Values{4, 5, 6});
  CHECK(index_select(matrix, 0, integers({}, {0})).shape() == Shape{0, 3});
  CHECK(index_select(matrix, 1, integers({}, {0})).shape() == Shape{2, 0});
  CHECK(index_select(labels, 0, integers({1, 1})).values() == Values{1, 1});
  CHECK(index_select(matrix, 1, integers(1)).values() == Values{2, 5});
  CHECK(embedding(index, tensor({{1, 2}, {3, 4}, {5, 6}})).shape() == Shape{2, 2, 2});
}

TEST_CASE("take_along_axis and scatter_add use an index for each element, and repeated indices add up") {
  CHECK(take_along_axis(matrix, integers({{2, 0, 2, 1}, {0, 0, 1, 2}}), 1).values() == Values{3, 1, 3, 2, 4, 4, 5, 6});
  CHECK(take_along_axis(matrix, integers({{1, 0, 1}}), 0).values() == Values{4, 2, 6});
  CHECK(take_along_axis(labels, integers({2, 2}), -1).values() == Values{2, 2});
  CHECK(take_along_axis(matrix, integers({}, {2, 0}), 1).shape() == Shape{2, 0});
  CHECK(scatter_add(matrix, 1, integers({{2, 2, 2, 0}, {0, 1, 0, 1}}), tensor({{1, 10, 100, 1000}, {1, 2, 3, 4}}))
            .values() == Values{1001, 2, 114, 8, 11, 6});
  CHECK(scatter_add(matrix, 0, integers({}, {0, 3}), zeros({0, 3})).values() == matrix.values());
  CHECK_FALSE(scatter_add(matrix, 0, integers({}, {0, 3}), zeros({0, 3})).array().shares_buffer_with(matrix.array()));
}

TEST_CASE("gradients that meet at one index have the same bits every time on any number of threads") {
  const Tensor source = random_normal({40, 300}, 1, "source"),
               index = integers(std::vector<std::int64_t>(300, 7), {300});
  const auto slopes = [&](int threads) {
    set_num_threads(threads);
    const Tensor w = variable(random_normal({9, 40}, 1, "weight"));
    const Values values = grad(sum(embedding(index, w) * transpose(source)), w).values();
    set_num_threads(0);
    return values;
  };
  CHECK(slopes(1) == slopes(2));
  const Tensor all = integers(std::vector<std::int64_t>(40 * 300, 3), {40, 300});
  CHECK(scatter_add(zeros({40, 5}), 1, all, source).values() == scatter_add(zeros({40, 5}), 1, all, source).values());
}

TEST_CASE("on cuda an index out of range gives NaN or is not added, and throws in anomaly mode") {
  PLUMB_REQUIRE_CUDA();
  const Tensor there = ones({2, 3}, cuda_f32), wrong = integers({{0, 3}, {-1, 2}}, Device::cuda);
  const Values taken = take_along_axis(there, wrong, 1).values();
  CHECK(taken[0] == 1);
  CHECK(std::isnan(taken[1]));
  CHECK(std::isnan(taken[2]));
  CHECK(scatter_add(there, 1, wrong, ones({2, 2}, cuda_f32)).values() == Values{2, 1, 1, 1, 1, 2});
  const AnomalyMode anomaly;
  CHECK_THAT(error_of([&] { static_cast<void>(take_along_axis(there, wrong, 1)); }),
             contains("expected indices in 0..2 for axis 1 of [2, 3], got 3 at 1"));
}
