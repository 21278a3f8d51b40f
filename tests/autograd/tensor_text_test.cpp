// The text that fmt prints for a tensor.
#include <cmath>
#include <numeric>

#include "autograd/tensor.h"
#include "tests/support/catch.h"

using namespace plumb;

namespace {

Tensor counted(const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0);
  return tensor(values, shape);
}

}  // namespace

TEST_CASE("small tensors are shown in full") {
  CHECK(fmt::format("{}", full({}, 2.5)) == "f32 [] 2.5");
  CHECK(fmt::format("{}", tensor({1, 0.5, -2}, {3})) == "f32 [3] [1, 0.5, -2]");
  CHECK(fmt::format("{}", tensor({1, 0.5, -2, 4, 5, 1.0 / 3}, {2, 3})) ==
        "f32 [2, 3]\n"
        "[[     1,    0.5,     -2],\n"
        " [     4,      5, 0.3333]]");
  CHECK(fmt::format("{}", counted({2, 1, 2})) == "f32 [2, 1, 2]\n[[[0, 1]],\n [[2, 3]]]");
  CHECK(fmt::format("{}", integers({3, -7}, {2})) == "i64 [2] [3, -7]");
  CHECK(fmt::format("{}", Tensor(array_from(std::vector<std::uint8_t>{0, 1}, {2}, Device::cpu))) == "u8 [2] [0, 1]");
  CHECK(fmt::format("{}", tensor({1, std::nan("")}, {2}, {DType::f64, Device::reference})) ==
        "f64 [2] on reference [1, nan]");
  CHECK(fmt::format("{}", tensor({1.001}, {1}, {DType::bf16, Device::cpu})) == "bf16 [1] [1]");
  CHECK(fmt::format("{}", variable(tensor({1}, {1}))) == "f32 [1] [1]");
}

TEST_CASE("large tensors show the ends of their long axes") {
  CHECK(fmt::format("{}", counted({200})).find("...") == std::string::npos);
  CHECK(fmt::format("{}", counted({201})) == "f32 [201] [0, 1, 2, ..., 198, 199, 200]");
  CHECK(fmt::format("{}", counted({100, 7})) ==
        "f32 [100, 7]\n"
        "[[  0,   1,   2, ...,   4,   5,   6],\n"
        " [  7,   8,   9, ...,  11,  12,  13],\n"
        " [ 14,  15,  16, ...,  18,  19,  20],\n"
        " ...,\n"
        " [679, 680, 681, ..., 683, 684, 685],\n"
        " [686, 687, 688, ..., 690, 691, 692],\n"
        " [693, 694, 695, ..., 697, 698, 699]]");
  CHECK(fmt::format("{}", counted({64, 3, 224, 224})).size() < 10000);
}

TEST_CASE("tensors without elements and undefined ones have a text too") {
  CHECK(fmt::format("{}", zeros({0})) == "f32 [0] []");
  CHECK(fmt::format("{}", zeros({2, 0})) == "f32 [2, 0]\n[[],\n []]");
  CHECK(fmt::format("{}", Tensor()) == "undefined tensor");
}
