// Products with the Hessian compared with known values, and its largest eigenvalue compared with matrices
// whose eigenvalues are known.
#include <cmath>
#include <numbers>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

// A symmetric matrix as a linear map of one vector.
std::function<Tensors(const Tensors&)> times(const Tensor& matrix) {
  return [matrix](const Tensors& v) { return Tensors{matmul(matrix, v[0])}; };
}

// A matrix with the eigenvalues `values` in random directions: Q diag Q^T, with Q a product of Householder reflections.
Tensor with_eigenvalues(const Values& values, Defaults where) {
  const auto n = static_cast<std::int64_t>(values.size());
  Tensor q = eye(n, where);
  for (int i = 0; i < 3; ++i) {
    const Tensor u = random_normal({n}, 1, fmt::format("reflection {}", i), where);
    q = q - outer(matmul(q, u), u) * (2 / dot(u, u).item());
  }
  return matmul(q * tensor(values, {n}, where), q, false, true);
}

nn::ViTOptions small_vit() {
  return {.image = 8,
          .patch = 4,
          .channels = 1,
          .classes = 3,
          .dim = 8,
          .depth = 2,
          .heads = 2,
          .method = "pre",
          .seed = 1};
}

}  // namespace

TEST_CASE("dot, scale, add and norm treat a list of tensors as one vector") {
  const Tensors a{tensor({1, 2}), tensor({{3}})}, b{tensor({4, 5}), tensor({{6}})};
  CHECK(dot(a, b).item() == 32);
  CHECK(norm(a) == Approx(std::sqrt(14.0)));
  CHECK(scale(a, 2)[0].values() == Values{2, 4});
  CHECK(add(a, b)[1].values() == Values{9});
  CHECK(add(a, b, -2)[0].values() == Values{-7, -8});
  const Tensor x = variable(tensor({1, 2}));
  CHECK(grad(dot({x, x}, {x * x, x}), x).values() == Values{5, 16});  // the gradient of x^3 + x^2
  const Tensors drawn = random_normal_like(a, 1, "v");
  CHECK(drawn[0].shape() == Shape{2});
  CHECK(drawn[1].values() != std::vector{drawn[0].values()[0]});
}

TEST_CASE("hvp of a quadratic is the matrix times v, and hvp of a linear function is 0") {
  const Tensor a = with_eigenvalues({3, -1, 2, 0.5}, reference_f64),
               x = variable(random_normal({4}, 1, "x", reference_f64));
  const Tensor other = variable(random_normal({2, 2}, 1, "other", reference_f64));
  const Tensors v{random_normal({4}, 1, "v", reference_f64), ones({2, 2}, reference_f64)};
  const Tensor loss = 0.5 * dot(x, matmul(a, x)) + sum(other);
  const Tensors hv = hvp(loss, {x, other}, v);
  CHECK(relative_error(hv[0], matmul(a, v[0])) < 1e-12);
  CHECK(hv[1].values() == Values{0, 0, 0, 0});
  CHECK(hvp(sum(x) + sum(other), {x, other}, v)[0].values() == Values{0, 0, 0, 0});
  CHECK(hvp(loss, {x}, {v[0]})[0].values() == hv[0].values());  // the loss keeps its graph
  const HessianProduct product(loss, {x, other});
  CHECK(product(v)[0].values() == hv[0].values());
  CHECK(product(scale(v, 2))[0].values() == (hv[0] * 2).values());
  CHECK(relative_error(product.gradient()[0], matmul(a, x)) < 1e-12);
}

TEST_CASE("hvp of a ViT equals the difference of gradients along v and is symmetric") {
  const DefaultsScope scope(reference_f64);
  const nn::ViT model(small_vit());
  const Tensor images = random_normal({3, 1, 8, 8}, 1, "images"), labels = integers({0, 2, 1}, {3}, Device::reference);
  const auto loss = [&] { return cross_entropy(model(images), labels, 0.1); };
  const Tensors parameters = model.trainable(), v = random_normal_like(parameters, 1, "v"),
                w = random_normal_like(parameters, 1, "w");
  const Tensors hv = hvp(loss(), parameters, v), hw = hvp(loss(), parameters, w);
  CHECK(dot(hv, w).item() == Approx(dot(hw, v).item()).epsilon(1e-10));
  const double step = 1e-6;
  const auto moved = [&](double by) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      copy_into((parameters[i].detach() + v[i] * by).array(), parameters[i].array());
    return grad(loss(), parameters);
  };
  const Tensors ahead = moved(step), behind = moved(-2 * step);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    CHECK(relative_error(hv[i], (ahead[i] - behind[i]) / (2 * step)) < 2e-7);
}

TEST_CASE("top_eigenvalue is the largest eigenvalue and not the largest in magnitude") {
  for (const Defaults where : {reference_f64, cpu_f32}) {
    const double exact = where.dtype == DType::f64 ? 1e-9 : 1e-5;
    const Tensor a = with_eigenvalues({2, -7, 1, 0.5, 1.9, -3, 0, 0.2}, where);
    const TopEigenvalue top = top_eigenvalue(times(a), {zeros({8}, where)}, {.tolerance = 1e-6});
    CHECK(top.value == Approx(2).epsilon(exact));
    CHECK(top.converged);
    CHECK(top.products <= 8);
    CHECK(norm(top.vector) == Approx(1).epsilon(1e-6));
    CHECK(relative_error(matmul(a, top.vector[0]), top.vector[0] * top.value) < 1e-5);
    CHECK(top_eigenvalue(times(-a), {zeros({8}, where)}).value == Approx(7).epsilon(1e-3));
    CHECK(top_eigenvalue(times(zeros({8, 8}, where)), {zeros({8}, where)}).value == 0);
    CHECK(top_eigenvalue(times(eye(8, where) * -3), {zeros({8}, where)}).value ==
          Approx(-3).epsilon(exact));  // one product is enough, because every vector is an eigenvector
    CHECK(top_eigenvalue(times(tensor({{-4}}, where)), {zeros({1}, where)}).value == -4);
  }
}

TEST_CASE("top_eigenvalue finds the largest of the close eigenvalues of the second difference") {
  const std::int64_t n = 60;
  const Defaults where = reference_f64;
  const Tensor a = 2 * eye(n, where) - diag(ones({n - 1}, where), 1) - diag(ones({n - 1}, where), -1);
  const double largest = 2 - 2 * std::cos(std::numbers::pi * static_cast<double>(n) / static_cast<double>(n + 1));
  const TopEigenvalue top = top_eigenvalue(times(a), {zeros({n}, where)}, {.tolerance = 1e-8});
  CHECK(top.value == Approx(largest).epsilon(1e-12));
  CHECK(top.converged);
  CHECK(std::abs(top.value - largest) <= top.residual + 1e-12);
  const TopEigenvalue short_of = top_eigenvalue(times(a), {zeros({n}, where)}, {.tolerance = 1e-8, .products = 5});
  CHECK_FALSE(short_of.converged);
  CHECK(short_of.products == 5);
  CHECK(short_of.value < largest);
  const Tensor error = matmul(a, short_of.vector[0]) - short_of.vector[0] * short_of.value;
  CHECK(norm(error).item() == Approx(short_of.residual).epsilon(1e-6));
}

TEST_CASE("the sharpness of a ViT is the largest eigenvalue of its Hessian, row by row") {
  const DefaultsScope scope(reference_f64);
  nn::ViT model(small_vit());
  model.each_parameter([](const std::string& name, nn::Parameter& p) {
    p.frozen() = !name.starts_with("head") && name.find("bias") == name.npos;
  });
  const Tensor images = random_normal({3, 1, 8, 8}, 1, "images"), labels = integers({0, 2, 1}, {3}, Device::reference);
  const Tensors parameters = model.trainable();
  const HessianProduct product(cross_entropy(model(images), labels), parameters);
  std::int64_t size = 0;
  for (const Tensor& p : parameters) size += p.numel();
  REQUIRE(size > 50);
  const auto parts = [&](const Tensor& v) {
    Tensors all;
    std::int64_t begin = 0;
    for (const Tensor& p : parameters) {
      all.push_back(reshape(slice(v, 0, begin, begin + p.numel()), p.shape()));
      begin += p.numel();
    }
    return all;
  };
  Tensors rows;
  const Tensor unit = eye(size);
  for (std::int64_t i = 0; i < size; ++i) {
    Tensors row;
    for (const Tensor& part : product(parts(unit[i]))) row.push_back(flatten(part));
    rows.push_back(concat(row, 0));
  }
  const Tensor hessian = stack(rows);
  CHECK(relative_error(hessian, transpose(hessian)) < 1e-12);
  // The power method on the dense matrix, shifted so that the largest eigenvalue is also the largest in magnitude.
  const double shift = norm(hessian).item();
  Tensor v = random_normal({size}, 9, "start");
  double value = 0;
  for (int i = 0; i < 3000; ++i) {
    const Tensor w = matmul(hessian, v) + v * shift;
    value = norm(w).item() - shift;
    v = w / norm(w).item();
  }
  const TopEigenvalue top = top_eigenvalue(cross_entropy(model(images), labels), parameters, {.tolerance = 1e-7});
  CHECK(top.converged);
  CHECK(top.value == Approx(value).epsilon(1e-6));
}

TEST_CASE("second-order functions refuse mismatched tensors and invalid options") {
  const Tensor x = variable(ones({2}));
  const Tensor loss = sum(x * x);
  CHECK_THAT(error_of([&] { static_cast<void>(hvp(loss, {x}, {})); }),
             contains("[hvp] expected equally many tensors on both sides, got 1 and 0"));
  CHECK_THAT(error_of([&] { static_cast<void>(hvp(loss, {x}, {ones({3})})); }),
             contains("[hvp] expected tensors of the same shapes on both sides, got [2] and [3] at 0"));
  CHECK_THAT(error_of([&] { static_cast<void>(dot(Tensors{}, Tensors{})); }),
             contains("[dot] expected at least one tensor, got none"));
  CHECK_THAT(error_of([&] { static_cast<void>(norm(Tensors{})); }),
             contains("[norm] expected at least one tensor, got none"));
  CHECK_THAT(error_of([&] { static_cast<void>(top_eigenvalue(loss, {x}, {.products = 0})); }),
             contains("[top_eigenvalue] expected a tolerance of at least 0 and at least one product, got 0.001 and 0"));
  CHECK_THAT(error_of([&] {
               static_cast<void>(top_eigenvalue(times(ones({2, 2})), {}));
             }),
             contains("[top_eigenvalue] expected at least one tensor, got none"));
  CHECK_THAT(error_of([&] {
               static_cast<void>(top_eigenvalue(times(ones({2, 2})), {zeros({0})}));
             }),
             contains("[top_eigenvalue] expected tensors with elements, got none"));
  CHECK_THAT(error_of([&] {
               static_cast<void>(top_eigenvalue(times(full({2, 2}, NAN)), {zeros({2})}));
             }),
             contains("[top_eigenvalue] expected finite products, got one of norm nan at product 1"));
}
