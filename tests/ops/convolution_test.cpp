// conv2d, batch_norm2d and dyt beyond the shared op cases: known values, precision, errors.
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("conv2d computes a cross-correlation and does not flip the filter") {
  for (Device device : {Device::reference, Device::cpu}) {
    const Defaults where{DType::f32, device};
    const Tensor x = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3}, where),
                 w = tensor({1, 10, 100, 1000}, {1, 1, 2, 2}, where);
    CHECK(conv2d(x, w).values() == std::vector<double>{5421, 6532, 8754, 9865});
    CHECK(conv2d(x, w, tensor({0.5}, {1}, where), {.stride = 2, .padding = 1}).values() ==
          std::vector<double>{1000.5, 3200.5, 7040.5, 9865.5});
  }
}

TEST_CASE("batch_norm2d normalises each channel over samples and pixels") {
  const Tensor x = random_normal({4, 3, 5, 6}, 1, "x", reference_f64) * 3 + 7;
  const Tensor y = batch_norm2d(x, ones({3}, reference_f64), zeros({3}, reference_f64), least_eps);
  const auto [mean_x, variance_x] = batch_statistics(x);
  const auto [mean_y, variance_y] = batch_statistics(y);
  CHECK(mean_x.shape() == Shape{3});
  const std::vector<double> values = x.values();
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i / 30 % 3 == c) sum += values[i], squares += values[i] * values[i];
    const double m = sum / 120;
    CHECK(mean_x.values()[c] == Approx(m).epsilon(1e-12));
    CHECK(variance_x.values()[c] == Approx(squares / 120 - m * m).epsilon(1e-10));
  }
  CHECK(relative_error(mean_y, zeros({3}, reference_f64)) < 1e-12);
  CHECK(relative_error(variance_y, ones({3}, reference_f64)) < 1e-12);
}

TEST_CASE("batch_norm2d in f32 on cpu is within 2e-5 of f64, for a batch of images with a mean") {
  const OpCase c{.name = "batch_norm2d of a batch",
                 .shapes = {{64, 16, 32, 32}, {16}, {16}},
                 .f = [](const Tensors& in) { return batch_norm2d(in[0] * 2 + 3, in[1], in[2], 1e-5); }};
  const Tensors single = value_and_gradients(c.f, inputs_of(c, cpu_f32)),
                exact = value_and_gradients(c.f, inputs_of(c, {DType::f64, Device::cpu}));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    INFO("result " << i);
    CHECK(relative_error(single[i].values(), exact[i].values()) < 2e-5);
  }
}

TEST_CASE("error messages of conv2d, batch_norm2d and dyt name the expected shapes") {
  const Tensor x = zeros({2, 3, 5, 5}), w = zeros({4, 3, 3, 3}), v = zeros({3});
  CHECK_THAT(error_of([&] {
               conv2d(x, zeros({4, 2, 3, 3}));
             }),
             contains("[conv2d] expected input [B, C, H, W] and weight [O, C, kh, kw] with the same C, got [2, 3, 5, "
                      "5] and [4, 2, 3, 3]"));
  CHECK_THAT(error_of([&] { conv2d(v, w); }), contains("[conv2d] expected input [B, C, H, W]"));
  CHECK_THAT(error_of([&] { conv2d(x, w, v); }),
             contains("[conv2d] expected bias [4] for weight [4, 3, 3, 3], got [3]"));
  CHECK_THAT(error_of([&] { conv2d(x, w, {}, {.stride = 0}); }), contains("[conv2d] expected a stride of at least 1"));
  CHECK_THAT(error_of([&] { conv2d(x, w, {}, {.padding = -1}); }),
             contains("padding of at least 0, both below 2^31, got 1 and -1"));
  for (const std::int64_t large : {std::int64_t{1} << 31, std::int64_t{1} << 62}) {
    CHECK_THAT(error_of([&] { conv2d(x, w, {}, {.padding = large}); }), contains("both below 2^31, got 1 and "));
    CHECK_THAT(error_of([&] { conv2d(x, w, {}, {.stride = large}); }),
               contains("both below 2^31, got ") && contains(" and 0"));
  }
  CHECK_THAT(error_of([&] { conv2d(x, w, {}, {.padding = (std::int64_t{1} << 31) - 1}); }),
             contains("[conv2d] expected fewer than 2^59 elements"));
  CHECK(conv2d(x, w, {}, {.stride = (std::int64_t{1} << 31) - 1}).shape() == Shape{2, 4, 1, 1});
  CHECK_THAT(error_of([&] {
               conv2d(x, zeros({4, 3, 6, 2}));
             }),
             contains("[conv2d] expected an image at least as large as the filter [4, 3, 6, 2] after padding by 0, got "
                      "[2, 3, 5, 5]"));
  CHECK_THAT(error_of([&] { batch_norm2d(v, v, v, 1e-5); }),
             contains("[batch_norm2d] expected images [B, C, H, W] with at least one pixel, got [3]"));
  CHECK_THAT(error_of([&] { batch_norm2d(x, v, zeros({4}), 1e-5); }),
             contains("weight and bias [C], got [2, 3, 5, 5] and [4]"));
  CHECK_THAT(error_of([&] { dyt(x, v, zeros({5}), zeros({5})); }), contains("[dyt] expected alpha [1], got [3]"));
  CHECK_THAT(error_of([&] { dyt(x, zeros({1}), v, v); }),
             contains("[dyt] expected input [.., 3] for weight [3] and bias [3], got [2, 3, 5, 5]"));
}
