// Compares every f32 kernel of the cpu backend except attention with the reference kernel of the same name (compare.h).
#include "core/backend.h"
#include "tests/backends/compare.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::int64_t sizes[] = {1, 3, 31, 32, 33, 65, 4099};
const std::int64_t widths[] = {1, 5, 37, 64, 192};

Array integers_as_f32(const Shape& shape, std::int64_t below) {
  const Out a = fresh(shape);
  reference_kernels().cast(integers(shape, below), a);
  return a;
}

}  // namespace

TEST_CASE("cpu fill and unary", "[once]") {
  const float specials[] = {0.0f,     -0.0f,     1e-30f, -1e-30f, 90.0f, -90.0f, 300.0f,
                            INFINITY, -INFINITY, NAN,    1.0f,    -1.0f, -2.0f};
  for (std::int64_t n : sizes) {
    compare("fill", "exact", {{n}}, [](const Kernels& k, const Results& y) { k.fill(2.5, y[0]); });
    const Array any = random({n}, -4, 4), positive = random({n}, 1e-3, 10);
    const auto check = [&](Unary op, double p, const Array& x) {
      compare("unary " + std::to_string(static_cast<int>(op)), "unary", {{n}},
              [&](const Kernels& k, const Results& y) { k.unary(op, p, x, y[0]); });
    };
    for (Unary op : {Unary::exp, Unary::tanh, Unary::erf, Unary::relu, Unary::step, Unary::abs, Unary::sign,
                     Unary::sigmoid, Unary::sin, Unary::cos, Unary::expm1, Unary::floor, Unary::round})
      check(op, 0, any);
    for (Unary op : {Unary::log, Unary::sqrt, Unary::rsqrt, Unary::log1p}) check(op, 0, positive);
    for (double p : {1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 1.7}) check(Unary::pow, p, positive);
    for (Unary op : {Unary::multiply, Unary::add}) check(op, 0.3, any);
  }
  const Array x = array_from(std::span<const float>(specials), {13}, Device::cpu);
  for (Unary op : {Unary::exp, Unary::log, Unary::tanh, Unary::erf, Unary::sqrt, Unary::rsqrt, Unary::relu, Unary::step,
                   Unary::abs, Unary::sign, Unary::log1p, Unary::sigmoid, Unary::sin, Unary::cos, Unary::expm1,
                   Unary::floor, Unary::round})
    compare("special values of unary " + std::to_string(static_cast<int>(op)), "unary", {{13}},
            [&](const Kernels& k, const Results& y) { k.unary(op, 0, x, y[0]); });
}

TEST_CASE("cpu binary and where and broadcast for every kind of operand", "[once]") {
  std::vector<std::array<Shape, 3>> cases{{Shape{}, Shape{}, Shape{}},
                                          {Shape{5, 1, 7}, Shape{3, 1}, Shape{5, 3, 7}},
                                          {Shape{2, 3, 1, 5}, Shape{1, 4, 1}, Shape{2, 3, 4, 5}},
                                          {Shape{64, 1, 37}, Shape{64, 17, 37}, Shape{64, 17, 37}}};
  for (std::int64_t n : sizes)
    cases.insert(cases.end(),
                 {{Shape{n}, Shape{n}, Shape{n}}, {Shape{n}, Shape{1}, Shape{n}}, {Shape{}, Shape{n}, Shape{n}}});
  for (std::int64_t d : widths)
    cases.insert(cases.end(),
                 {{Shape{130, d}, Shape{d}, Shape{130, d}}, {Shape{130, 1}, Shape{130, d}, Shape{130, d}}});
  for (const auto& [left, right, result] : cases) {
    const Array a = random(left), b = random(right, 0.5, 2), mask = bytes(left, 0.4);
    for (Binary op : {Binary::add, Binary::subtract, Binary::multiply, Binary::divide})
      compare("binary " + to_string(left) + to_string(right), "binary", {result},
              [&, &a = a, &b = b](const Kernels& k, const Results& y) { k.binary(op, a, b, y[0]); });
    // Many elements of `steps` and `others` are equal.
    const Array steps = integers_as_f32(left, 3), others = integers_as_f32(right, 3);
    for (Binary op : {Binary::equal, Binary::less, Binary::less_equal, Binary::maximum, Binary::minimum})
      compare("comparison " + std::to_string(static_cast<int>(op)), "exact", {result},
              [&](const Kernels& k, const Results& y) { k.binary(op, steps, others, y[0]); });
    const Array base = random(left, 0.1, 3);
    compare("pow", "unary", {result},
            [&](const Kernels& k, const Results& y) { k.binary(Binary::pow, base, others, y[0]); });
    compare("where", "exact", {result}, [&](const Kernels& k, const Results& y) { k.where(mask, a, b, y[0]); });
    compare("broadcast", "exact", {result}, [&](const Kernels& k, const Results& y) { k.broadcast(a, y[0]); });
  }
}

TEST_CASE("cpu reduce over every kind of axes", "[once]") {
  std::vector<std::pair<Shape, Shape>> cases{{{}, {}},
                                             {{5, 6, 7}, {1, 6, 1}},
                                             {{5, 6, 7}, {5, 1, 7}},
                                             {{4, 5, 6, 7}, {1, 5, 1, 7}},
                                             {{64, 65, 20}, {64, 1, 20}},
                                             {{200, 300}, {1, 1}},
                                             {{3, 20000}, {3, 1}},
                                             {{2, 3, 4}, {2, 3, 4}}};
  for (std::int64_t n : sizes) cases.push_back({{n}, {1}});
  for (std::int64_t d : widths) cases.insert(cases.end(), {{{301, d}, {1, d}}, {{301, d}, {301, 1}}});
  for (const auto& [from, to] : cases) {
    const Array x = random(from);
    for (Reduce op : {Reduce::sum, Reduce::max})
      compare("reduce " + to_string(from), op == Reduce::sum ? "reduce" : "exact", {to},
              [&](const Kernels& k, const Results& y) { k.reduce(op, x, y[0]); });
  }
  const Array x = random({40, 50});
  Out(x).mutable_data<float>()[777] = NAN;
  for (const Shape& to : {Shape{1, 1}, Shape{40, 1}, Shape{1, 50}})
    compare("reduce with NaN", "reduce", {to},
            [&](const Kernels& k, const Results& y) { k.reduce(Reduce::max, x, y[0]); });
}

TEST_CASE("cpu matmul and linear", "[once]") {
  for (auto [M, N, K] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {3, 5, 7}, {64, 10, 64}, {33, 65, 31}, {200, 192, 64}, {130, 1, 37}, {1, 192, 64}})
    for (int t = 0; t < 4; ++t) {
      const bool ta = t & 1, tb = t & 2;
      const Array a = random(ta ? Shape{K, M} : Shape{M, K}), b = random(tb ? Shape{N, K} : Shape{K, N});
      compare("matmul", "product", {{M, N}}, [&](const Kernels& k, const Results& y) { k.matmul(a, ta, b, tb, y[0]); });
      const Array batch = random(ta ? Shape{2, 3, K, M} : Shape{2, 3, M, K}),
                  other = random(tb ? Shape{3, N, K} : Shape{3, K, N});
      compare("batched matmul", "product", {{2, 3, M, N}},
              [&](const Kernels& k, const Results& y) { k.matmul(batch, ta, other, tb, y[0]); });
      const Array rows = random(ta ? Shape{4, 1, K, M} : Shape{4, 1, M, K}),
                  columns = random(tb ? Shape{1, 3, N, K} : Shape{1, 3, K, N});
      compare("matmul, both sides broadcast", "product", {{4, 3, M, N}},
              [&](const Kernels& k, const Results& y) { k.matmul(rows, ta, columns, tb, y[0]); });
      compare("matmul, one side batched", "product", {{2, 3, M, N}},
              [&](const Kernels& k, const Results& y) { k.matmul(batch, ta, b, tb, y[0]); });
    }
  for (auto [R, N, K] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                 {64, 10, 64},
                                                                 {65, 37, 5},
                                                                 {1088, 192, 64},
                                                                 {1088, 64, 64},
                                                                 {999, 64, 256},
                                                                 {1650, 37, 16},
                                                                 {300, 128, 256},
                                                                 {300, 129, 256},
                                                                 {2048, 24, 16},
                                                                 {2051, 37, 16}}) {
    const Array x = random({R, K}), w = random({N, K}), b = random({N}), dy = random({R, N});
    compare("linear", "product", {{R, N}, {R, N}}, [&](const Kernels& k, const Results& y) {
      k.linear_forward({}, x, w, b, {}, y[0]);
      k.linear_forward({}, x, w, Array(), {}, y[1]);
    });
    compare("linear_backward", "product", {{R, K}, {N, K}, {N}, {R, K}, {R, K}},
            [&](const Kernels& k, const Results& y) {
              k.linear_backward({}, {}, dy, x, w, b, {.dx = y[0], .dw = y[1], .db = y[2]});
              k.linear_backward({}, {}, dy, x, w, b, {.dx = y[3]});
              copy_into(x, y[4]);
              k.linear_backward({}, {}, dy, x, w, b, {.dx = y[4], .add_to_dx = true});
            });
  }
}

TEST_CASE("linear layers without rows, inputs or outputs") {
  using After = LinearCall::After;
  for (Precision products : {Precision::f32, Precision::bf16})
    for (auto [R, N, K] : std::vector<std::array<std::int64_t, 3>>{{0, 3, 5}, {0, 16, 32}, {4, 0, 5}, {4, 3, 0}}) {
      const Array x = random({R, K}), w = random({N, K}), b = random({N}), dy = random({R, N}), skip = random({R, N}),
                  gate = random({N});
      compare("linear", "product", {{R, N}, {R, N}, {R, N}, {R, N}}, [&](const Kernels& k, const Results& y) {
        k.linear_forward({.products = products}, x, w, b, {}, y[0]);
        k.linear_forward({.after = After::residual, .skip = skip, .gate = gate, .products = products}, x, w, b, {},
                         y[1]);
        k.linear_forward({.after = After::gelu, .products = products}, x, w, b, {.slope = y[3]}, y[2]);
      });
      compare("linear_backward", "product", {{R, K}, {N, K}, {N}, {R, K}, {N, K}, {N}, {N}},
              [&](const Kernels& k, const Results& y) {
                k.linear_backward({.products = products}, {}, dy, x, w, b, {.dx = y[0], .dw = y[1], .db = y[2]});
                k.linear_backward({.after = After::residual, .gate = gate, .products = products}, {}, dy, x, w, b,
                                  {.dx = y[3], .dw = y[4], .db = y[5], .dgate = y[6]});
              });
    }
}

TEST_CASE("cpu linear with the operations before and after it", "[once]") {
  using After = LinearCall::After;
  for (auto [B, T, N, K] : std::vector<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {3, 5, 7, 5}, {13, 5, 37, 19}, {8, 17, 64, 48}, {64, 9, 48, 33}, {97, 17, 32, 16}}) {
    const std::int64_t R = B * T;
    const Array x = random({R, K}), w = random({N, K}), b = random({N}), dy = random({R, N}),
                gamma = random({K}, 0.5, 2), beta = random({K}), skip = random({R, N}), gate = random({N}),
                scalar = random({1}), rows = random({B}), slope = random({R, N});
    const Array mean = random({R}), rstd = random({R}, 0.5, 3);
    compare("norm before", "norm", {{R, N}, {R}, {R}}, [&](const Kernels& k, const Results& y) {
      k.linear_forward({.gamma = gamma, .beta = beta, .eps = 1e-6}, x, w, b, {.mean = y[1], .rstd = y[2]}, y[0]);
    });
    for (Gelu form : {Gelu::erf, Gelu::tanh})
      compare("gelu after", "product", {{R, N}, {R, N}, {R, N}}, [&](const Kernels& k, const Results& y) {
        k.linear_forward({.after = After::gelu, .gelu = form}, x, w, b, {.slope = y[1]}, y[0]);
        k.linear_forward({.after = After::gelu, .gelu = form}, x, w, b, {}, y[2]);
      });
    for (const Array& g : {Array(), scalar, gate})
      for (const Array& s : {Array(), rows}) {
        compare("junction after", "product", {{R, N}}, [&](const Kernels& k, const Results& y) {
          k.linear_forward({.after = After::residual, .skip = skip, .gate = g, .row_scale = s}, x, w, b, {}, y[0]);
        });
        compare("junction backward", "norm_gradient", {{R, K}, {N, K}, {N}, g.defined() ? g.shape() : Shape{1}, {R, K}},
                [&](const Kernels& k, const Results& y) {
                  const LinearCall call{.after = After::residual, .gate = g, .row_scale = s};
                  if (!g.defined()) k.fill(0, y[3]);
                  k.linear_backward(call, {}, dy, x, w, b,
                                    {.dx = y[0], .dw = y[1], .db = y[2], .dgate = g.defined() ? y[3] : Out()});
                  k.linear_backward(call, {}, dy, x, w, b, {.dx = y[4]});
                });
        if (g.defined())
          compare("gate's gradient alone", "norm_gradient", {g.shape(), g.shape()},
                  [&](const Kernels& k, const Results& y) {
                    const LinearCall call{.after = After::residual, .gate = g, .row_scale = s};
                    k.linear_backward(call, {}, dy, x, w, b, {.dgate = y[0]});
                    k.linear_backward(call, {}, dy, x, w, Array(), {.dgate = y[1]});
                  });
      }
    for (bool gelu : {false, true})
      compare("norm backward", "norm_gradient", {{R, K}, {N, K}, {N}, {K}, {K}, {R, K}, {N, K}, {N}, {K}},
              [&](const Kernels& k, const Results& y) {
                // mean and rstd must belong to x, because the reference recomputes mean and rstd from x.
                const LinearCall call{
                    .gamma = gamma, .beta = beta, .eps = 1e-6, .after = gelu ? After::gelu : After::nothing};
                const Out own_mean = empty_like(mean), own_rstd = empty_like(rstd);
                k.layer_norm_forward(x, gamma, beta, call.eps, empty_like(x), own_mean, own_rstd);
                const LinearKept kept{own_mean, own_rstd, gelu ? slope : Array()};
                copy_into(x, y[0]);
                k.linear_backward(
                    call, kept, dy, x, w, b,
                    {.dx = y[0], .add_to_dx = true, .dw = y[1], .db = y[2], .dgamma = y[3], .dbeta = y[4]});
                k.linear_backward(call, kept, dy, x, w, b, {.dx = y[5]});
                k.linear_backward(call, kept, dy, x, w, b, {.dw = y[6]});
                k.linear_backward(call, kept, dy, x, w, b, {.db = y[7]});
                k.linear_backward(call, kept, dy, x, w, b, {.dgamma = y[8]});
              });
  }
}

TEST_CASE("cpu movement", "[once]") {
  const auto moved = [](const Shape& shape, std::vector<int> axes) {
    std::vector<std::int64_t> dims;
    for (int a : axes) dims.push_back(shape[a]);
    const Array x = random(shape);
    compare("permute " + to_string(shape), "exact", {Shape(dims)},
            [&](const Kernels& k, const Results& y) { k.permute(x, axes, y[0]); });
  };
  moved({64, 17, 2, 32}, {0, 2, 1, 3});  // the permutation of attention heads
  moved({5, 7}, {1, 0});
  moved({65, 33}, {1, 0});
  moved({9, 3, 4, 8, 4, 8}, {0, 2, 4, 1, 3, 5});  // the permutation of patches
  moved({2, 3, 4, 5, 6}, {4, 2, 0, 3, 1});
  moved({1, 5, 1, 3}, {3, 2, 1, 0});
  moved({7}, {0});
  const Array x = random({6, 9, 37}), part = random({6, 2, 37}), rows = integers({50}, 6), values = random({50, 9, 37});
  for (std::int64_t start : {0, 4, 8})
    compare("slice", "exact", {{6, 1, 37}}, [&](const Kernels& k, const Results& y) { k.slice(x, 1, start, y[0]); });
  compare("slice, last axis", "exact", {{6, 9, 5}},
          [&](const Kernels& k, const Results& y) { k.slice(x, 2, 32, y[0]); });
  compare("assign_slice", "exact", {{6, 9, 37}}, [&](const Kernels& k, const Results& y) {
    k.fill(0, y[0]);
    k.assign_slice(part, 1, 7, y[0]);
  });
  compare("gather", "exact", {{50, 9, 37}}, [&](const Kernels& k, const Results& y) { k.gather(x, rows, y[0]); });
  compare("scatter_add", "binary", {{6, 9, 37}}, [&](const Kernels& k, const Results& y) {
    k.fill(0, y[0]);
    k.scatter_add(values, rows, y[0]);
  });
  const Array pixels = bytes({3, 5, 7}, 0.5);
  Array expected({7, 3, 5}, DType::u8, Device::cpu), got({7, 3, 5}, DType::u8, Device::cpu);
  const std::vector<int> axes{2, 0, 1};
  reference_kernels().permute(pixels, axes, expected);
  cpu_kernels().permute(pixels, axes, got);
  CHECK(to_vector(got) == to_vector(expected));
}

TEST_CASE("kernels along an axis and max_pool2d") {
  for (const auto& [shape, axis] :
       {std::pair(Shape{4099}, 0), {Shape{1}, 0}, {Shape{5, 33, 7}, 1}, {Shape{31, 32}, 1}, {Shape{32, 31}, 0}}) {
    const Array x = random(shape), index = integers(shape.with(axis, 65), shape[axis]),
                source = random(shape.with(axis, 65));
    for (const bool from_the_end : {false, true})
      compare("cumsum", "binary", {shape},
              [&, &axis = axis](const Kernels& k, const Results& y) { k.cumsum(x, axis, from_the_end, y[0]); });
    compare("take_along", "exact", {shape.with(axis, 65)},
            [&, &axis = axis](const Kernels& k, const Results& y) { k.take_along(x, index, axis, y[0]); });
    compare("scatter_add_along", "binary", {shape}, [&, &axis = axis](const Kernels& k, const Results& y) {
      k.fill(0.5, y[0]);
      k.scatter_add_along(source, index, axis, y[0]);
    });
  }
  for (const Pool2dOptions& o : {Pool2dOptions{},
                                 {.kernel = 3, .stride = 2, .padding = 1},
                                 {.kernel = 1, .stride = 3},
                                 {.kernel = 5, .stride = 1, .padding = 2}}) {
    const Array x = random({2, 3, 9, 33});
    Out(x).mutable_data<float>()[100] = NAN;
    compare_results("max_pool2d", "exact", {{{2, 3, o.output(9), o.output(33)}, DType::i64}},
                    [&](const Kernels& k, const Results& y) { k.max_pool2d(x, o, y[0]); });
  }
}

TEST_CASE("cpu kernels of second derivatives: gelu, softmax, layer norm", "[once]") {
  for (std::int64_t n : sizes) {
    const Array x = random({n}, -6, 6), dy = random({n}), g = random({n});
    for (Gelu form : {Gelu::erf, Gelu::tanh}) {
      compare("gelu_second", "gelu", {{n}, {n}},
              [&](const Kernels& k, const Results& y) { k.gelu_second(form, g, dy, x, y[0], y[1]); });
      compare("gelu_second towards dy", "gelu", {{n}},
              [&](const Kernels& k, const Results& y) { k.gelu_second(form, g, dy, x, y[0], Out()); });
    }
    const Out p = fresh({n});
    reference_kernels().softmax_forward(x, p);
    compare("softmax_second", "softmax", {{n}},
            [&](const Kernels& k, const Results& y) { k.softmax_second(g, dy, p, y[0]); });
  }
  for (std::int64_t D : widths)
    for (std::int64_t R : {1, 7, 260}) {
      const Array x = random({R, D}, -2, 3), dy = random({R, D}), g = random({R, D}), gamma = random({D}, 0.5, 2);
      const Out y = fresh({R, D}), mean = fresh({R}), rstd = fresh({R});
      reference_kernels().layer_norm_forward(x, gamma, random({D}), 1e-2, y, mean, rstd);
      compare("layer_norm_second " + std::to_string(R) + "x" + std::to_string(D), "norm_gradient",
              {{R, D}, {R, D}, {D}}, [&](const Kernels& k, const Results& out) {
                k.layer_norm_second(g, dy, x, gamma, mean, rstd, out[0], out[1], out[2]);
              });
    }
}

TEST_CASE("cpu gelu with and without bias and in place", "[once]") {
  for (Gelu form : {Gelu::erf, Gelu::tanh}) {
    for (std::int64_t n : sizes) {
      const Array x = random({n}, -6, 6);
      compare("gelu", "gelu", {{n}, {n}, {n}}, [&](const Kernels& k, const Results& y) {
        k.gelu_forward(form, x, Array(), y[0], y[1]);
        k.gelu_forward(form, x, Array(), y[2], Array());
      });
    }
    for (std::int64_t d : widths) {
      const Array x = random({70, d}, -6, 6), b = random({d});
      compare("gelu with bias", "gelu", {{70, d}, {70, d}, {70, d}}, [&](const Kernels& k, const Results& y) {
        copy_into(x, y[1]);
        k.gelu_forward(form, y[1], b, y[0], y[1]);
        k.gelu_forward(form, x, b, y[2], Array());
      });
    }
    const Array far =
        array_from(std::vector<double>{-1e4, -100, -20, -9, 9, 20, 100, 1e4, 0, NAN}, {10}, DType::f32, Device::cpu);
    compare("gelu far out", "gelu", {{10}, {10}},
            [&](const Kernels& k, const Results& y) { k.gelu_forward(form, far, Array(), y[0], y[1]); });
    const Array huge = array_from(std::vector<double>{-3e38, -1e30, -1e20, -1e12, -1e9, 1e9, 1e12, 1e20, 1e30, 3e38},
                                  {10}, DType::f32, Device::cpu),
                one = full_like(huge, {10}, 1);
    compare("gelu of huge numbers", "gelu", {{10}, {10}, {10}, {10}}, [&](const Kernels& k, const Results& y) {
      k.gelu_forward(form, huge, Array(), y[0], y[1]);
      k.gelu_second(form, one, one, huge, y[2], y[3]);
    });
    const Out of_inf = fresh({2}), slope_of_inf = fresh({2});
    const Array inf = array_from(std::vector<double>{INFINITY, INFINITY}, {2}, DType::f32, Device::cpu);
    cpu_kernels().gelu_forward(form, inf, Array(), of_inf, slope_of_inf);
    CHECK(of_inf.mutable_data<float>()[0] == INFINITY);
  }
}

TEST_CASE("cpu softmax and log_softmax", "[once]") {
  for (std::int64_t d : {1, 3, 5, 31, 33, 64, 192, 1000, 4099}) {
    const Array x = random({70, d}, -8, 8), dy = random({70, d}), p = random({70, d}, 0, 2.0 / static_cast<double>(d)),
                logs = random({70, d}, -9, 0);
    compare("softmax", "softmax", {{70, d}, {70, d}}, [&](const Kernels& k, const Results& y) {
      k.softmax_forward(x, y[0]);
      k.softmax_backward(dy, p, y[1]);
    });
    compare("log_softmax", "log_softmax", {{70, d}},
            [&](const Kernels& k, const Results& y) { k.log_softmax_forward(x, y[0]); });
    compare("log_softmax_backward", "reduce", {{70, d}},
            [&](const Kernels& k, const Results& y) { k.log_softmax_backward(dy, logs, y[0]); });
  }
  const Array x = random({4, 20});
  Out(x).mutable_data<float>()[3] = NAN;
  Out(x).mutable_data<float>()[25] = INFINITY;
  Out(x).mutable_data<float>()[45] = -INFINITY;
  compare("softmax of NaN and infinities", "softmax", {{4, 20}},
          [&](const Kernels& k, const Results& y) { k.softmax_forward(x, y[0]); });
}

TEST_CASE("cpu layer norm and rms norm", "[once]") {
  for (std::int64_t d : widths)
    for (std::int64_t rows : {1, 3, 33, 260}) {
      const Array x = random({rows, d}, 1, 3), dy = random({rows, d}), gamma = random({d}), beta = random({d}),
                  mean = random({rows}, 1.5, 2.5), rstd = random({rows}, 0.5, 3);
      compare("layer_norm", "norm", {{rows, d}, {rows}, {rows}},
              [&](const Kernels& k, const Results& y) { k.layer_norm_forward(x, gamma, beta, 0.1, y[0], y[1], y[2]); });
      compare("layer_norm_backward", "norm_gradient", {{rows, d}, {d}, {d}, {rows, d}, {d}},
              [&](const Kernels& k, const Results& y) {
                k.layer_norm_backward(dy, x, gamma, mean, rstd, y[0], y[1], y[2]);
                k.layer_norm_backward(dy, x, gamma, mean, rstd, y[3], Array(), Array());
                k.layer_norm_backward(dy, x, gamma, mean, rstd, Array(), y[4], Array());
              });
      compare("rms_norm", "norm", {{rows, d}, {rows}},
              [&](const Kernels& k, const Results& y) { k.rms_norm_forward(x, gamma, 1e-5, y[0], y[1]); });
      compare("rms_norm_backward", "norm_gradient", {{rows, d}, {d}, {d}}, [&](const Kernels& k, const Results& y) {
        k.rms_norm_backward(dy, x, gamma, rstd, y[0], y[1]);
        k.rms_norm_backward(dy, x, gamma, rstd, Array(), y[2]);
      });
    }
}

TEST_CASE("cpu dyt", "[once]") {
  for (std::int64_t d : widths)
    for (std::int64_t rows : {1, 3, 33, 260}) {
      const Array x = random({rows, d}, -3, 3), dy = random({rows, d}), alpha = random({1}, 0.5, 2),
                  gamma = random({d}), beta = random({d});
      compare("dyt", "dyt", {{rows, d}},
              [&](const Kernels& k, const Results& y) { k.dyt_forward(x, alpha, gamma, beta, y[0]); });
      compare("dyt_backward", "dyt_gradient", {{rows, d}, {1}, {d}, {d}},
              [&](const Kernels& k, const Results& y) { k.dyt_backward(dy, x, alpha, gamma, y[0], y[1], y[2], y[3]); });
      compare("dyt_backward in part", "dyt_gradient", {{rows, d}, {d}}, [&](const Kernels& k, const Results& y) {
        k.dyt_backward(dy, x, alpha, gamma, y[0], Array(), Array(), Array());
        k.dyt_backward(dy, x, alpha, gamma, Array(), Array(), y[1], Array());
      });
    }
  const Array far = array_from(std::vector<double>{-1e30, -100, -9, 9, 100, 1e30, 0, NAN}, {1, 8}, DType::f32,
                               Device::cpu),
              one = full_like(far, {1}, 1), ones = full_like(far, {8}, 1);
  compare("dyt far out", "dyt_gradient", {{1, 8}, {1, 8}}, [&](const Kernels& k, const Results& y) {
    k.dyt_forward(far, one, ones, ones, y[0]);
    k.dyt_backward(ones.reshaped({1, 8}), far, one, ones, y[1], Array(), Array(), Array());
  });
}

TEST_CASE("cpu conv2d at odd sizes, strides and paddings", "[once]") {
  struct Case {
    Shape x, w;
    Conv2dGeometry options;
  };
  for (const Case& c :
       {Case{{1, 1, 1, 1}, {1, 1, 1, 1}, {}}, Case{{2, 3, 9, 8}, {5, 3, 3, 3}, {1, 1}},
        Case{{2, 3, 9, 8}, {5, 3, 3, 3}, {2, 1}}, Case{{2, 3, 9, 8}, {5, 3, 1, 1}, {2, 0}},
        Case{{3, 17, 5, 7}, {31, 17, 2, 4}, {1, 3}}, Case{{1, 2, 3, 3}, {4, 2, 3, 3}, {}},
        Case{{2, 2, 4, 4}, {3, 2, 2, 2}, {5, 0}}, Case{{1, 3, 2, 2}, {2, 3, 1, 1}, {1, 2}},
        Case{{9, 16, 14, 14}, {32, 16, 3, 3}, {1, 1}},  // several blocks of samples; the last block is smaller
        Case{{17, 3, 16, 16}, {16, 3, 3, 3}, {1, 1}}, Case{{8, 64, 8, 8}, {64, 64, 3, 3}, {2, 1}}}) {
    const Shape result{c.x[0], c.w[0], c.options.output(c.x[2], c.w[2]), c.options.output(c.x[3], c.w[3])},
        bias{c.w[0]};
    const Array x = random(c.x), w = random(c.w), b = random(bias), dy = random(result);
    const std::string name = "conv2d " + to_string(c.x) + to_string(c.w);
    compare(name, "product", {result, result}, [&](const Kernels& k, const Results& y) {
      k.conv2d_forward(x, w, b, c.options, y[0]);
      k.conv2d_forward(x, w, Array(), c.options, y[1]);
    });
    compare(name + " backward", "conv2d_gradient", {c.x, c.w, bias},
            [&](const Kernels& k, const Results& y) { k.conv2d_backward(dy, x, w, c.options, y[0], y[1], y[2]); });
    compare(name + " backward in part", "conv2d_gradient", {c.x, c.w}, [&](const Kernels& k, const Results& y) {
      k.conv2d_backward(dy, x, w, c.options, y[0], Array(), Array());
      k.conv2d_backward(dy, x, w, c.options, Array(), y[1], Array());
    });
  }
}

TEST_CASE("cpu layer norm keeps its precision at a mean far from 0", "[once]") {
  const Array x = random({9, 64}, 999, 1001), one = full_like(x, {64}, 1), zero = full_like(x, {64}, 0);
  compare("layer_norm far from 0", "norm_gradient", {{9}}, [&](const Kernels& k, const Results& y) {
    const Out out = fresh({9, 64}), mean = fresh({9});
    k.layer_norm_forward(x, one, zero, 1e-5, out, mean, y[0]);
  });
}

TEST_CASE("cpu cross-entropy with labels or smoothing or soft targets", "[once]") {
  for (std::int64_t classes : {1, 5, 10, 37, 1000})
    for (std::int64_t rows : {1, 3, 64}) {
      const Array x = random({rows, classes}, -5, 5), labels = integers({rows}, classes),
                  target = random({rows, classes}, 0, 2.0 / static_cast<double>(classes)),
                  dloss = full_like(x, {}, 1.5), sums = random({rows, 2}, 5, 7);
      for (double smoothing : {0.0, 0.1})
        compare("cross_entropy", "cross_entropy", {{}, {rows, 2}, {rows, classes}},
                [&](const Kernels& k, const Results& y) {
                  k.cross_entropy_forward(x, labels, Array(), smoothing, y[0], y[1]);
                  k.cross_entropy_backward(dloss, x, labels, Array(), smoothing, sums, y[2]);
                });
      compare("soft cross_entropy", "cross_entropy", {{}, {rows, 2}, {rows, classes}},
              [&](const Kernels& k, const Results& y) {
                k.cross_entropy_forward(x, Array(), target, 0, y[0], y[1]);
                k.cross_entropy_backward(dloss, x, Array(), target, 0, sums, y[2]);
              });
    }
}

TEST_CASE("cpu dropout draws the same mask as the reference", "[once]") {
  for (std::int64_t n : sizes)
    for (std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{8} << 32, (std::uint64_t{8} << 32) - 61})
      for (double p : {0.0, 0.1, 0.5, 1.0}) {
        const Array ones = full_like(random({1}), {n}, 1), x = random({n});
        compare("dropout mask", "exact", {{n}},
                [&](const Kernels& k, const Results& y) { k.dropout(ones, 42, 7, drop_threshold(p), first, y[0]); });
        compare("dropout", "dropout", {{n}},
                [&](const Kernels& k, const Results& y) { k.dropout(x, 42, 7, drop_threshold(p), first, y[0]); });
      }
}

TEST_CASE("cpu gated residual with every gate and row scale, for tokens and for images", "[once]") {
  std::vector<std::pair<Shape, Array>> cases;  // the stream and the gate
  for (std::int64_t d : widths)
    for (const Array& gate : {Array(), Array(random({1})), Array(random({d}))}) cases.push_back({{3, 14, d}, gate});
  for (std::int64_t channels : {1, 5})
    for (auto [height, width] :
         std::vector<std::array<std::int64_t, 2>>{{1, 1}, {31, 1}, {3, 11}, {1, 4099}})  // H W = 1, 31, 33 and 4099
      cases.push_back({{3, channels, height, width}, random({channels, 1, 1})});
  for (const auto& [shape, gate] : cases)
    for (const Array& row_scale : {Out(), random({3})}) {
      const Array skip = random(shape), branch = random(shape), dy = random(shape);
      const std::string name = "gated_residual " + to_string(shape);
      compare(name, "gated_residual", {shape, shape}, [&, &gate = gate](const Kernels& k, const Results& y) {
        k.gated_residual_forward(skip, branch, gate, row_scale, y[0]);
        // Without dgate, the kernel does not need `branch`.
        k.gated_residual_backward(dy, Array(), gate, row_scale, y[1], Array());
      });
      if (gate.defined())
        compare(name + " backward", "gate_gradient", {shape, gate.shape(), gate.shape()},
                [&, &gate = gate](const Kernels& k, const Results& y) {
                  k.gated_residual_backward(dy, branch, gate, row_scale, y[0], y[1]);
                  k.gated_residual_backward(dy, branch, gate, row_scale, Array(), y[2]);
                });
    }
}

namespace {

// Returns a StepState with this scale of the gradients. If `goes_on` is false, the step must change nothing.
Array state_of(double scale, bool goes_on = true) {
  return array_from(std::vector<double>{scale, goes_on ? 1.0 : 0.0, 0, 0}, {4}, DType::f64, Device::cpu);
}

}  // namespace

TEST_CASE("cpu optimizers", "[once]") {
  for (std::int64_t n : sizes) {
    const Array g = random({n}), p = random({n}), m = random({n}, -0.1, 0.1), v = random({n}, 0, 0.1);
    const Array g2 = random({7}), p2 = random({7}), m2 = random({7}, -0.1, 0.1), v2 = random({7}, 0, 0.1);
    for (const Array& state : {Array(), state_of(0.7), state_of(0.7, false)}) {
      const AdamWStep step{.lr = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .weight_decay = 0.05,
                           .correction1 = 0.2,
                           .correction2 = 0.01};
      AdamWStep other = step;
      other.weight_decay = 0;
      for (const auto kernel : {&Kernels::adamw, &Kernels::lamb})
        compare(kernel == &Kernels::adamw ? "adamw" : "lamb", "optimizer", {{n}, {n}, {n}, {7}, {7}, {7}},
                [&](const Kernels& k, const Results& y) {
                  copy_into(p, y[0]), copy_into(m, y[1]), copy_into(v, y[2]);
                  copy_into(p2, y[3]), copy_into(m2, y[4]), copy_into(v2, y[5]);
                  const std::vector<AdamWUpdate> both{{step, g, y[0], y[1], y[2]}, {other, g2, y[3], y[4], y[5]}};
                  (k.*kernel)(both, state);
                });
      for (bool nesterov : {false, true})
        compare("sgd", "optimizer", {{n}, {n}, {n}}, [&](const Kernels& k, const Results& y) {
          copy_into(p, y[0]), copy_into(m, y[1]), copy_into(p, y[2]);
          const SgdStep s{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov};
          const std::vector<SgdUpdate> both{{s, g, y[0], y[1]}, {s, g, y[2], Out()}};
          k.sgd(both, state);
        });
      compare("adagrad", "optimizer", {{n}, {n}, {7}, {7}}, [&](const Kernels& k, const Results& y) {
        copy_into(p, y[0]), copy_into(v, y[1]), copy_into(p2, y[2]), copy_into(v2, y[3]);
        const AdagradStep s{.lr = 0.1, .eps = 1e-3, .weight_decay = 0.01};
        const std::vector<AdagradUpdate> both{{s, g, y[0], y[1]}, {s, g2, y[2], y[3]}};
        k.adagrad(both, state);
      });
    }
    compare("ema", "optimizer", {{n}, {7}}, [&](const Kernels& k, const Results& y) {
      copy_into(p, y[0]), copy_into(p2, y[1]);
      const std::vector<EmaUpdate> both{{g, y[0]}, {g2, y[1]}};
      k.ema(0.03, both);
    });
    std::vector<Array> many{g, p};  // more arrays than fit into one launch of the cuda backend
    for (int i = 0; i < 200; ++i) many.push_back(i % 3 ? g2 : p2);
    const auto squares = [&](const Kernels& k) {
      Array sum({}, DType::f64, Device::cpu);
      k.sum_of_squares(many, sum);
      return item(sum);
    };
    for (int more = 0; more < 2; ++more, many.push_back(g2)) {  // an even and an odd number of arrays
      const double expected = squares(reference_kernels()), found = squares(cpu_kernels());
      CHECK(found == Approx(expected).epsilon(1e-12));
      for (int threads : {1, 2, 3}) {
        const Threads scope(threads);
        CHECK(squares(cpu_kernels()) == found);
      }
      if (why_no_cuda().empty()) CHECK(squares(cuda_kernels_of_host_arrays()) == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("an optimizer step changes nothing after training has stopped") {
  const Array g = random({40}), before = random({40}), stopped = state_of(1, false);
  std::vector<const Kernels*> all{&reference_kernels(), &cpu_kernels()};
  if (why_no_cuda().empty()) all.push_back(&cuda_kernels_of_host_arrays());
  for (const Kernels* k : all) {
    const Out p = empty_like(before), m = empty_like(before), v = empty_like(before);
    for (const Out& y : {p, m, v}) copy_into(before, y);
    const AdamWUpdate adam{
        {.lr = 1, .beta1 = 0.5, .beta2 = 0.9, .eps = 1, .weight_decay = 0.1, .correction1 = 1, .correction2 = 1},
        g,
        p,
        m,
        v};
    const SgdUpdate sgd{{.lr = 1, .momentum = 0.5, .weight_decay = 0.1, .nesterov = true}, g, p, m};
    const AdagradUpdate adagrad{{.lr = 1, .eps = 1, .weight_decay = 0.1}, g, p, v};
    k->adamw({&adam, 1}, stopped), k->lamb({&adam, 1}, stopped), k->sgd({&sgd, 1}, stopped),
        k->adagrad({&adagrad, 1}, stopped);
    for (const Out& y : {p, m, v}) CHECK(same_bytes(y, before));
    k->sgd({&sgd, 1}, state_of(1));
    CHECK_FALSE(same_bytes(p, before));
  }
}

TEST_CASE("step_state computes the clipping scale and whether training goes on") {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto scalar = [](double x, DType dtype = DType::f64) {
    return array_from(std::vector<double>{x}, {}, dtype, Device::cpu);
  };
  std::vector<const Kernels*> all{&reference_kernels(), &cpu_kernels()};
  if (why_no_cuda().empty()) all.push_back(&cuda_kernels_of_host_arrays());
  for (const Kernels* k : all) {
    const auto state = [&](const Array& loss, double squares, double most, const Array& before) {
      const Out y(Array({4}, DType::f64, Device::cpu));
      k->step_state(loss, scalar(squares), most, before, y);
      return to_vector(y);
    };
    CHECK(state(scalar(2.5, DType::f32), 16, infinity, {}) == std::vector<double>{1, 1, 2.5, 16});
    CHECK(state(scalar(2.5), 16, 1, {}) == std::vector<double>{1 / (4 + 1e-6), 1, 2.5, 16});
    // Gradients are never scaled up.
    CHECK(state(scalar(2.5), 16, 8, state_of(0.5)) == std::vector<double>{1, 1, 2.5, 16});
    CHECK(state(scalar(2.5), 16, 8, state_of(1, false))[1] == 0);  // a stopped training stays stopped
    CHECK(state(scalar(nan, DType::f32), 16, 8, {})[1] == 0);
    CHECK(state(scalar(-infinity), 16, 8, {})[1] == 0);
    CHECK(state(scalar(1), infinity, 8, state_of(1))[1] == 0);
    CHECK(state(scalar(1), nan, infinity, {})[1] == 0);
    CHECK(state({}, nan, 8, {})[1] == 0);  // without a loss, only the norm counts
    CHECK(state({}, 16, 8, {}) == std::vector<double>{1, 1, 0, 16});
  }
}

TEST_CASE("drop_path and drop_head scales are the same in all backends") {
  const std::uint64_t key = random_key(3, "blocks.1");
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const std::uint32_t threshold : {0u, 1u, 20000u, 65535u}) {
      compare_results("drop_path_scale", "exact", {{{300}, dtype}}, [&](const Kernels& k, const Results& y) {
        k.drop_path_scale(key, 7, 1u << 31, 5, threshold, 1.25, y[0]);
      });
      for (const std::int64_t heads : {1, 3, 8, 13})
        compare_results("drop_head_scale", "exact", {{{300, 1, heads, 1}, dtype}},
                        [&](const Kernels& k, const Results& y) { k.drop_head_scale(key, 7, 9, threshold, y[0]); });
    }
}

TEST_CASE("cpu adamw leaves no denormal moments", "[once]") {
  const Out g = full_like(random({1}), {40}, 1e-25), p = full_like(g, {40}, 1), m = full_like(g, {40}, 1.3e-38),
            v = full_like(g, {40}, 1.2e-38);
  const AdamWUpdate update{
      {.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-8, .weight_decay = 0, .correction1 = 1, .correction2 = 1},
      g,
      p,
      m,
      v};
  cpu_kernels().adamw({&update, 1}, state_of(1e-20));
  CHECK(to_vector(m) == std::vector<double>(40, 0.0));
  CHECK(to_vector(v) == std::vector<double>(40, 0.0));
}

TEST_CASE("cpu kernels use the reference for f64", "[once]") {
  const Array x = array_from(std::vector<double>{1, 2, 3}, {3}, DType::f64, Device::cpu);
  const Out y = empty_like(x), z = empty_like(x);
  cpu_kernels().unary(Unary::exp, 0, x, y);
  reference_kernels().unary(Unary::exp, 0, x, z);
  CHECK(to_vector(y) == to_vector(z));
}

TEST_CASE("the description of the cpu names processor and instructions and threads and oneDNN") {
  const Threads scope(2);
  CHECK_THAT(cpu_description(), test::contains("2 threads, oneDNN "));
}
