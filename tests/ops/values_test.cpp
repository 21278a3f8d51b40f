// Cases that random numbers do not reach: values at the ends of their domain, derivatives at kinks and ties,
// and ops that return integers.
#include <cmath>
#include <limits>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

Tensor row(const Values& values, Defaults where = defaults()) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}, where);
}

// Returns df/dx for the sum of the elements of f.
Values slopes(const std::function<Tensor(const Tensor&)>& f, const Values& at, Defaults where) {
  const Tensor x = variable(row(at, where));
  return grad(sum(f(x)), x).values();
}

}  // namespace

TEST_CASE("sigmoid, silu, softplus, log1p and their derivatives are exact at both ends") {
  for (const Defaults where : everywhere) {
    const double relative = where.dtype == DType::f64 ? 1e-14 : 1e-6;
    const auto near = [&](double value) { return Approx(value).epsilon(relative).margin(0); };
    const Values ends{-80, -20, 0, 20, 80};
    const Values s = sigmoid(row(ends, where)).values(), p = softplus(row(ends, where)).values(),
                 u = silu(row(ends, where)).values();
    const Values ds = slopes([](const Tensor&x) { return sigmoid(x); }, ends, where),
                 dp = slopes([](const Tensor&x) { return softplus(x); }, ends, where);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const double x = ends[i], logistic = x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
      CHECK(s[i] == near(logistic));
      CHECK(u[i] == near(x * logistic));
      CHECK(p[i] == near(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))));
      CHECK(dp[i] == near(logistic));
      CHECK(ds[i] == Approx(logistic * (1 - logistic)).epsilon(relative).margin(1e-7));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(sigmoid(row({-1000, 1000, -infinity, infinity}, where)).values() == Values{0, 1, 0, 1});
    CHECK(softplus(row({-1000, 1000, infinity}, where)).values() == Values{0, 1000, infinity});
    CHECK(slopes([](const Tensor& x) { return softplus(x); }, {-1000, 0, 1000}, where) == Values{0, 0.5, 1});
    CHECK(slopes([](const Tensor& x) { return silu(x); }, {-1000, 0, 1000}, where) == Values{0, 0.5, 1});
    for (const double x : {1e-30, 1e-9, -1e-6, 1e-3, -0.5, 1e6})
      CHECK(log1p(row({x}, where)).values()[0] == near(std::log1p(row({x}, where).values()[0])));
    CHECK(slopes([](const Tensor& x) { return log1p(x); }, {0, 1, 3}, where) == Values{1, 0.5, 0.25});
  }
}

TEST_CASE("derivatives at kinks and ties agree with ops.h") {
  for (const Defaults where : everywhere) {
    CHECK(slopes([](const Tensor& x) { return abs(x); }, {-2, 0, 3}, where) == Values{-1, 0, 1});
    CHECK(slopes([](const Tensor& x) { return sign(x); }, {-2, 0, 3}, where) == Values{0, 0, 0});
    CHECK(slopes([](const Tensor& x) { return clamp(x, -1, 2); }, {-1.5, -1, 0, 2, 2.5}, where) ==
          Values{0, 1, 1, 1, 0});
    CHECK(slopes([](const Tensor& x) { return min(x); }, {3, 1, 1, 2}, where) == Values{0, 0.5, 0.5, 0});
    CHECK(slopes([](const Tensor& x) { return max(x); }, {3, 1, 3, 2}, where) == Values{0.5, 0, 0.5, 0});
    CHECK(slopes([](const Tensor& x) { return norm(x); }, {0, 0}, where) == Values{0, 0});
    CHECK(slopes(
              [](const Tensor& x) {
                return norm(reshape(x, {2, 2}), {1});
              },
              {3, 4, 0, 0},
              where) == slopes([](const Tensor& x) { return norm(slice(x, 0, 0, 2)); }, {3, 4, 0, 0}, where));
  }
}

TEST_CASE("values of sign, abs, clamp, min, var and norm") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Defaults where : everywhere) {
    CHECK(abs(row({-2, 0, 3, -infinity}, where)).values() == Values{2, 0, 3, infinity});
    CHECK(sign(row({-2, 0, 3, -infinity}, where)).values() == Values{-1, 0, 1, -1});
    CHECK(clamp(row({-2, 0.5, 3}, where), -1, 1).values() == Values{-1, 0.5, 1});
    CHECK(clamp(row({-2, 0.5, 3}, where), 0, infinity).values() == Values{0, 0.5, 3});
    CHECK(std::isnan(clamp(row({nan}, where), 0, 1).item()));
    CHECK(std::isnan(sign(row({nan}, where)).item()));
    const Tensor x = tensor({1, 5, -2, 4, 0, 7}, {2, 3}, where);
    CHECK(min(x).item() == -2);
    CHECK(min(x, {0}).values() == Values{1, 0, -2});
    CHECK(min(x, {1}, true).shape() == Shape{2, 1});
    CHECK(var(row({1, 2, 3, 6}, where)).item() == 3.5);
    CHECK(var(row({1, 3, 5}, where), {}, false, 1).item() == 4);
    CHECK(var(x, {0}, true).values() == Values{2.25, 6.25, 20.25});
    CHECK(norm(row({3, 4}, where)).item() == 5);
    CHECK(norm(tensor({3, 4, 0, 0}, {2, 2}, where), {1}).values() == Values{5, 0});
  }
  // The variance is computed in two passes, so a large mean does not destroy the digits of the variance.
  CHECK(var(row({10000, 10001, 10002, 10003}, cpu_f32)).item() == 1.25);
}

TEST_CASE("argmax: along any axis, the first of equal elements, the first NaN") {
  const double nan = std::nan("");
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({1, 5, 5, 4, 0, 7, 4, 9, 2, -1, -2, -1}, {2, 3, 2}, where);
    CHECK(argmax(x).dtype() == DType::i64);
    CHECK(argmax(x).shape() == Shape{2, 3});
    CHECK(argmax(x).values() == Values{1, 0, 1, 1, 0, 1});
    CHECK(argmax(x, 1).values() == Values{1, 2, 0, 0});
    CHECK(argmax(x, 0, true).shape() == Shape{1, 3, 2});
    CHECK(argmax(x, 0).values() == Values{1, 1, 0, 0, 0, 0});
    CHECK(argmax(reshape(x, {-1})).item() == 7);
    CHECK(argmax(row({2, 7, 1, 7}, where)).item() == 1);
    CHECK(argmax(row({1, nan, 3, nan}, where)).item() == 1);
    CHECK(argmax(row({-3}, where)).item() == 0);
    CHECK_FALSE(argmax(variable(x)).requires_grad());
  }
}

TEST_CASE("comparisons of floats and integers give masks, and are false for NaN") {
  const double nan = std::nan("");
  for (const Defaults where : everywhere) {
    const Tensor a = row({1, 2, 3, nan}, where), b = row({2, 2, 2, 2}, where);
    CHECK((a < b).dtype() == DType::u8);
    CHECK((a < b).values() == Values{1, 0, 0, 0});
    CHECK((a <= b).values() == Values{1, 1, 0, 0});
    CHECK((a > b).values() == Values{0, 0, 1, 0});
    CHECK((a >= b).values() == Values{0, 1, 1, 0});
    CHECK(equal(a, b).values() == Values{0, 1, 0, 0});
    CHECK((a < 2).values() == Values{1, 0, 0, 0});
    CHECK((a <= 2).values() == Values{1, 1, 0, 0});
    CHECK((a > 2).values() == Values{0, 0, 1, 0});
    CHECK((a >= 2).values() == Values{0, 1, 1, 0});
    CHECK(equal(a, 2).values() == Values{0, 1, 0, 0});
    CHECK((reshape(slice(a, 0, 0, 3), {3, 1}) > slice(a, 0, 0, 3)).values() == Values{0, 0, 0, 1, 0, 0, 1, 1, 0});
    CHECK_FALSE((variable(a) > 0).requires_grad());
    CHECK(where.device == (a > 0).device());
  }
  for (const Device device : {Device::reference, Device::cpu}) {
    const Tensor labels = integers({0, 4, 2, (std::int64_t{1} << 53) - 1}, {4}, device);
    CHECK(equal(labels, integers({0, 3, 2, std::int64_t{1} << 53}, {4}, device)).values() == Values{1, 0, 1, 0});
    CHECK((labels > 2).values() == Values{0, 1, 0, 1});
    CHECK(equal(labels > 2, 1).values() == Values{0, 1, 0, 1});
  }
}

TEST_CASE("maximum and minimum: NaN is passed on, and ties share the gradient") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Defaults where : everywhere) {
    const Tensor a = row({1, 2, 3, nan, 1, -infinity}, where), b = row({2, 2, 1, 0, nan, infinity}, where);
    const Values larger = maximum(a, b).values(), smaller = minimum(a, b).values();
    CHECK(Values(larger.begin(), larger.begin() + 3) == Values{2, 2, 3});
    CHECK(Values(smaller.begin(), smaller.begin() + 3) == Values{1, 2, 1});
    for (const std::size_t i : {3, 4}) {
      CHECK(std::isnan(larger[i]));
      CHECK(std::isnan(smaller[i]));
    }
    CHECK(larger[5] == infinity);
    CHECK(smaller[5] == -infinity);
    const Tensor u = variable(slice(a, 0, 0, 3)), v = variable(slice(b, 0, 0, 3));
    const Tensors of_larger = grad(sum(maximum(u, v)), {u, v}), of_smaller = grad(sum(minimum(u, v)), {u, v});
    CHECK(of_larger[0].values() == Values{0, 0.5, 1});
    CHECK(of_larger[1].values() == Values{1, 0.5, 0});
    CHECK(of_smaller[0].values() == Values{1, 0.5, 0});
    CHECK(of_smaller[1].values() == Values{0, 0.5, 1});
    // maximum and minimum of a tensor and a number.
    const Tensor capped = minimum(a, 2), floored = maximum(a, 2);
    CHECK((floored.dtype() == where.dtype && floored.device() == where.device));
    CHECK(slice(floored, 0, 0, 3).values() == Values{2, 2, 3});
    CHECK(slice(capped, 0, 0, 3).values() == Values{1, 2, 2});
    CHECK(std::isnan(floored.values()[3]));
    CHECK(slopes([](const Tensor& x) { return maximum(x, 2); }, {1, 2, 3}, where) == Values{0, 0.5, 1});
    CHECK(slopes([](const Tensor& x) { return minimum(x, 2); }, {1, 2, 3}, where) == Values{1, 0.5, 0});
  }
}

TEST_CASE("pow of tensors, and its derivatives at points where the plain formula gives NaN") {
  for (const Defaults where : everywhere) {
    const Tensor x = row({2, 0, 0, -2, 0, 5}, where), y = row({3, 0, 2, 3, 1, 0}, where);
    CHECK(pow(x, y).values() == Values{8, 1, 0, -8, 0, 1});
    const Tensor u = variable(x), v = variable(y);
    const Tensors first = grad(sum(pow(u, v)), {u, v}, {.create_graph = true});
    CHECK(first[0].values() == Values{12, 0, 0, 12, 1, 0});
    const Values of_exponent = first[1].values();
    CHECK(of_exponent[0] == Approx(8 * std::log(2.0)).epsilon(1e-6));
    CHECK(of_exponent[1] == 0);
    CHECK(of_exponent[2] == 0);
    CHECK(std::isnan(of_exponent[3]));
    CHECK(of_exponent[5] == Approx(std::log(5.0)).epsilon(1e-6));
    const Values second = grad(sum(first[0]), u).values();  // y (y - 1) x^(y - 2)
    CHECK(second[0] == 12);
    CHECK(second[1] == 0);
    CHECK(second[2] == 2);
    CHECK(second[5] == 0);
  }
}

TEST_CASE("sin, cos, expm1, floor and round at limits and for large arguments") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Defaults where : everywhere) {
    const double relative = where.dtype == DType::f64 ? 1e-14 : 2e-7;
    const Tensor x = row({0, 1, -3, 1e5, 1e30, 1e-30, -40, 60}, where);
    const Values at = x.values(), s = sin(x).values(), c = cos(x).values(), e = expm1(x).values();
    for (std::size_t i = 0; i < at.size(); ++i) {
      CHECK(s[i] == Approx(std::sin(at[i])).epsilon(relative).margin(0));
      CHECK(c[i] == Approx(std::cos(at[i])).epsilon(relative).margin(0));
      if (at[i] < 80) CHECK(e[i] == Approx(std::expm1(at[i])).epsilon(relative).margin(0));
    }
    for (const double end : {infinity, -infinity, nan}) {
      CHECK(std::isnan(sin(row({end}, where)).item()));
      CHECK(std::isnan(cos(row({end}, where)).item()));
    }
    CHECK(expm1(row({infinity, -infinity, 1000}, where)).values() == Values{infinity, -1, infinity});
    CHECK(floor(row({-1.5, -0.5, 0.5, 2, 1e20, infinity}, where)).values() ==
          Values{-2, -1, 0, 2, row({1e20}, where).item(), infinity});
    CHECK(round(row({-1.5, -0.5, 0.5, 1.5, 2.5, 2.6, -infinity}, where)).values() ==
          Values{-2, 0, 0, 2, 2, 3, -infinity});
    CHECK(std::isnan(floor(row({nan}, where)).item()));
    CHECK(std::isnan(round(row({nan}, where)).item()));
    CHECK(std::signbit(round(row({-0.4}, where)).item()));
    CHECK(std::signbit(sin(row({-0.0}, where)).item()));
    CHECK(std::signbit(expm1(row({-0.0}, where)).item()));
    CHECK(slopes([](const Tensor& v) { return floor(v) + round(v); }, {0.3, 1.5}, where) == Values{0, 0});
  }
}

TEST_CASE("isnan, isfinite, where with numbers, masked_fill") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Defaults where_ : everywhere) {
    const Tensor x = row({1, nan, infinity, -infinity, -0.0}, where_);
    CHECK(isnan(x).dtype() == DType::u8);
    CHECK(isnan(x).values() == Values{0, 1, 0, 0, 0});
    CHECK(isfinite(x).values() == Values{1, 0, 0, 0, 1});
    CHECK(where(isfinite(x), x, 7).values() == Values{1, 7, 7, 7, 0});
    const Tensor chosen = where(isfinite(x), 1, 0, where_.dtype);
    CHECK(chosen.values() == Values{1, 0, 0, 0, 1});
    CHECK((chosen.dtype() == where_.dtype && chosen.device() == where_.device));
    CHECK(where(isfinite(x), 0.5, -2).dtype() == DType::f32);
    CHECK(where(isfinite(x), 7, row({1, 2, 3, 4, 5}, where_)).values() == Values{7, 2, 3, 4, 7});
    CHECK(masked_fill(row({1, 2, 3, 4, 5}, where_), isnan(x), -1).values() == Values{1, -1, 3, 4, 5});
    CHECK(slopes([&](const Tensor& v) { return masked_fill(v * v, isnan(x), nan); }, {1, 2, 3, 4, 5}, where_) ==
          Values{2, 0, 6, 8, 10});
  }
}

TEST_CASE("allclose: tolerances, infinities, NaN, broadcasting, integers") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  CHECK(allclose(row({1, 2}), row({1 + 5e-6, 2})));
  CHECK_FALSE(allclose(row({1, 2}), row({1.1, 2})));
  CHECK(allclose(row({1, 2}), row({1.1, 2}), 0.2));
  CHECK(allclose(row({0.0}), row({1e-9})));
  CHECK_FALSE(allclose(row({0.0}), row({1e-7})));
  CHECK(allclose(row({100}), row({101}), 0, 1));
  CHECK(allclose(row({infinity, -infinity}), row({infinity, -infinity})));
  CHECK_FALSE(allclose(row({infinity}), row({-infinity})));
  CHECK_FALSE(allclose(row({1.0}), row({infinity}), 1));
  CHECK_FALSE(allclose(row({nan}), row({nan})));
  CHECK(allclose(row({nan}), row({nan}), 1e-5, 1e-8, true));
  CHECK_FALSE(allclose(row({nan}), row({1.0}), 1e-5, 1e-8, true));
  CHECK(allclose(ones({2, 3}), ones({3})));
  CHECK(allclose(integers({1, 2}), integers({1, 2})));
  CHECK_FALSE(allclose(integers({1, 2}), integers({1, 3})));
  CHECK(allclose(zeros({0}), zeros({0})));
  CHECK(allclose(row({1, 2}, cpu_f32), row({1, 2}, reference_f32)));
}

TEST_CASE("einsum: shapes, arbitrary letters, implied results, empty extents") {
  const Tensor a = tensor({{1, 2, 3}, {4, 5, 6}}), b = tensor({{1, 0}, {0, 1}, {2, 2}});
  CHECK(einsum("ij,jk->ik", a, b).values() == matmul(a, b).values());
  CHECK(einsum("ij, jk", a, b).values() == matmul(a, b).values());
  CHECK(einsum("zj,ja", a, b).values() ==
        transpose(matmul(a, b)).values());  // the result has the letters in alphabetical order: az
  CHECK(einsum("ij,ij->", a, a).item() == 91);
  CHECK(einsum("ij,ij->ij", a, a).values() == (a * a).values());
  CHECK(einsum("i,j->ji", row({1, 2}), row({3, 4, 5})).values() == Values{3, 6, 4, 8, 5, 10});
  CHECK(einsum(",i->i", full({}, 2), row({3, 4})).values() == Values{6, 8});
  CHECK(einsum("ij,jk->ik", zeros({2, 0}), zeros({0, 3})).values() == Values(6, 0));
  CHECK(einsum("bij,bjk->bik", zeros({0, 2, 3}), zeros({0, 3, 4})).shape() == Shape{0, 2, 4});
}

TEST_CASE("matmul with vectors, dot, outer") {
  const Tensor a = tensor({{1, 2, 3}, {4, 5, 6}}), v = row({1, 0, 2}), w = row({1, 10});
  CHECK(matmul(a, v).shape() == Shape{2});
  CHECK(matmul(a, v).values() == Values{7, 16});
  CHECK(matmul(w, a).values() == Values{41, 52, 63});
  CHECK(matmul(a, w, true).values() == Values{41, 52, 63});
  CHECK(matmul(v, v).shape() == Shape{});
  CHECK(matmul(v, v).item() == 5);
  CHECK(dot(v, v).item() == 5);
  CHECK(dot(zeros({0}), zeros({0})).item() == 0);
  CHECK(outer(w, v).values() == Values{1, 0, 2, 10, 0, 20});
}

TEST_CASE("pooling: windows, padding, ties, NaN") {
  for (const Defaults where : everywhere) {
    const Tensor x = reshape(cast(arange(16, where.device), where.dtype), {1, 1, 4, 4});
    CHECK(max_pool2d(x, {}).values() == Values{5, 7, 13, 15});
    CHECK(max_pool2d(x, {.kernel = 3, .stride = 1}).values() == Values{10, 11, 14, 15});
    CHECK(max_pool2d(-x, {.kernel = 3, .stride = 2, .padding = 1}).values() ==
          Values{0, -1, -4, -5});  // padding is never the largest
    CHECK(max_pool2d(x, {.kernel = 4}).shape() == Shape{1, 1, 1, 1});
    CHECK(avg_pool2d(x, {}).values() == Values{2.5, 4.5, 10.5, 12.5});
    CHECK(avg_pool2d(ones({1, 1, 2, 2}, where), {.kernel = 2, .stride = 2, .padding = 1}).values() ==
          Values{0.25, 0.25, 0.25, 0.25});
    CHECK(max_pool2d(zeros({0, 3, 4, 4}, where), {}).shape() == Shape{0, 3, 2, 2});
    const Tensor ties = variable(ones({1, 1, 2, 2}, where));
    CHECK(grad(max_pool2d(ties, {}), ties, {.cotangent = ones({1, 1, 1, 1}, where)}).values() == Values{1, 0, 0, 0});
    const Tensor holed = reshape(row({1, std::nan(""), 3, 4}, where), {1, 1, 2, 2});
    CHECK(std::isnan(max_pool2d(holed, {}).item()));
  }
}

TEST_CASE("losses agree with PyTorch") {  // the values are results of torch 2 (F.mse_loss and so on)
  for (const Defaults where : everywhere) {
    const auto near = [](double value) { return Approx(value).epsilon(1e-6); };
    const Tensor x = tensor({{0.5, -1.5}, {2, 0}}, where), t = tensor({{0, 1}, {0.25, 0}}, where);
    CHECK(mse_loss(x, t).item() == near((0.25 + 6.25 + 3.0625) / 4));
    CHECK(l1_loss(x, t).item() == near((0.5 + 2.5 + 1.75) / 4));
    CHECK(huber_loss(x, t).item() == near((0.125 + 2 + 1.25) / 4));
    CHECK(huber_loss(x, t, 2).item() == near((0.125 + 3 + 1.53125) / 4));
    const auto bce = [](double u, double p) { return std::log1p(std::exp(u)) - u * p; };
    CHECK(binary_cross_entropy_with_logits(x, t).item() ==
          near((bce(0.5, 0) + bce(-1.5, 1) + bce(2, 0.25) + bce(0, 0)) / 4));
    CHECK(binary_cross_entropy_with_logits(row({1000, -1000}, where), row({1, 0}, where)).item() == 0);
    const Tensor p = tensor({{0.5, 0.5}, {0.25, 0.75}}, where), q = tensor({{1, 0}, {0.25, 0.75}}, where);
    CHECK(kl_div(log(p), q).item() == near(std::log(2.0) / 2));
    const Tensor target = variable(q);
    for (const double slope : grad(kl_div(log(p), target), target).values()) CHECK(std::isfinite(slope));
  }
}

TEST_CASE("reshape with an open extent, stack and chunk move the right elements") {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}), y = x * 10;
  CHECK(reshape(x, {-1}).shape() == Shape{6});
  CHECK(reshape(x, {3, -1}).shape() == Shape{3, 2});
  CHECK(reshape(x, {-1, 1, 6}).shape() == Shape{1, 1, 6});
  CHECK(reshape(x, {6}).shape() == Shape{6});
  CHECK(reshape(x, {-1}).array().shares_buffer_with(x.array()));
  CHECK(reshape(sum(x), {}).shape() == Shape{});
  CHECK(reshape(tensor({1}, {1}), {}).shape() == Shape{});
  CHECK(stack({x, y}).shape() == Shape{2, 2, 3});
  CHECK(stack({x, y}).values() == Values{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  CHECK(stack({x, y}, -1).values() == Values{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
  CHECK(stack({sum(x), sum(y)}).shape() == Shape{2});
  CHECK(stack({integers({1, 2}, {2}), integers({3, 4}, {2})}).values() == Values{1, 2, 3, 4});
  const Tensors columns = chunk(x, 3, 1);
  REQUIRE(columns.size() == 3);
  CHECK(columns[1].shape() == Shape{2, 1});
  CHECK(columns[1].values() == Values{2, 5});
  CHECK(chunk(x, 1, 0)[0].values() == x.values());
}

TEST_CASE("accuracy is the fraction of rows whose largest logit is at the label") {
  const Tensor logits = tensor({0, 1, 2, 5, 1, 0, 1, 1, 0, 0, 3, 0}, {2, 2, 3});
  CHECK(accuracy(logits, integers({2, 0, 0, 1}, {2, 2})) == 1);
  CHECK(accuracy(logits, integers({2, 0, 1, 2}, {2, 2})) == 0.5);
  CHECK(accuracy(variable(logits), integers({0, 1, 1, 2}, {2, 2})) == 0);
}

TEST_CASE("the norm of zeros has first and second derivatives of 0") {
  const Tensor x = variable(tensor({0, 0, 3, 4}, {2, 2}));
  const Tensor slope = grad(sum(norm(x, {1})), x, {.create_graph = true});
  CHECK(slope.values() == Values{0, 0, 0.6f, 0.8f});
  const Values second = grad(sum(slope), x).values();
  CHECK(second[0] == 0);
  CHECK(second[1] == 0);
  CHECK(second[2] == Approx(0.032).margin(1e-6));  // 1 / n - x_i (x_1 + x_2) / n^3
  CHECK(second[3] == Approx(-0.024).margin(1e-6));
}

TEST_CASE("max detects that its result was changed in place") {
  const Tensor x = variable(tensor({1, 5, 2}, {3}));
  const Tensor top = max(x);
  const Tensor y = top * top;
  copy_into(tensor({2}, {}).array(), top.array());
  CHECK_THAT(error_of([&] { static_cast<void>(backward(y)); }), contains("changed in place"));
}
