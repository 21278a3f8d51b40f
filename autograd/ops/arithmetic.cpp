// Elementwise primitives. Formulas of gradients ignore broadcasting, because the engine sums each
// gradient to the shape of its input.
#include <cmath>
#include <numbers>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

namespace detail {

void check_float(const char* op, const Tensor& x) {
  check_defined(op, x);
  check(is_float(x.dtype()), "[{}] expected f32 or f64, got {} {}: cast() it to f32 first", op, enum_name(x.dtype()),
        x.shape());
}

void check_eps(const char* op, double eps) {
  check(std::isfinite(eps) && eps >= least_eps,
        "[{}] expected a finite eps of at least {}, got {}: a row of zeros would become NaN", op, least_eps, eps);
}

void check_alike(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  check(a.dtype() == b.dtype(), "[{}] expected operands of one dtype, got {} {} and {} {}: cast() one of them", op,
        enum_name(a.dtype()), a.shape(), enum_name(b.dtype()), b.shape());
  check(a.device() == b.device(), "[{}] expected operands on one device, got {} on {} and {} on {}", op, a.shape(),
        enum_name(a.device()), b.shape(), enum_name(b.device()));
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check_float(op, a);
  check_float(op, b);
  check_alike(op, a, b);
}

int checked_axis(const char* op, const Shape& shape, int axis) {
  const int rank = shape.rank();
  check(rank > 0, "[{}] expected a tensor with an axis {}, got a scalar", op, axis);
  check(-rank <= axis && axis < rank, "[{}] expected an axis in -{}..{} of shape {}, got {}", op, rank, rank - 1, shape,
        axis);
  return shape.axis(axis);
}

}  // namespace detail

namespace {

Array compute(Binary op, const char* op_name, const Tensor& a, const Tensor& b) {
  detail::check_operands(op_name, a, b);
  Array y = empty_like(a.array(), broadcast(a.shape(), b.shape(), op_name));
  kernels(y).binary(op, a.array(), b.array(), y);
  return y;
}

Array compute(Unary op, const char* op_name, const Tensor& x, double parameter = 0) {
  detail::check_float(op_name, x);
  Array y = empty_like(x.array());
  kernels(y).unary(op, parameter, x.array(), y);
  return y;
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  return record("add", compute(Binary::add, "add", a, b), {a, b}, [](const Tensor& dy) { return Tensors{dy, dy}; });
}

Tensor operator-(const Tensor& a, const Tensor& b) {
  return record("subtract", compute(Binary::subtract, "subtract", a, b), {a, b}, [](const Tensor& dy) {
    return Tensors{dy, -dy};
  });
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  return record("multiply", compute(Binary::multiply, "multiply", a, b), {a, b},
                [a = Saved(a), b = Saved(b)](const Tensor& dy) {
                  return Tensors{a.requires_grad() ? dy * b : Tensor(), b.requires_grad() ? dy * a : Tensor()};
                });
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  return record("divide", compute(Binary::divide, "divide", a, b), {a, b},
                [b = Saved(b)](const Tensor& dy, const Tensor& y) {
                  const Tensor da = dy / b;
                  return Tensors{da, b.requires_grad() ? -da * y : Tensor()};
                });
}

Tensor operator+(const Tensor& x, double c) {
  return record("add", compute(Unary::add, "add", x, c), {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

Tensor operator*(const Tensor& x, double c) {
  return record("multiply", compute(Unary::multiply, "multiply", x, c), {x},
                [c](const Tensor& dy) { return Tensors{dy * c}; });
}

Tensor exp(const Tensor& x) {
  return record("exp", compute(Unary::exp, "exp", x), {x},
                [](const Tensor& dy, const Tensor& y) { return Tensors{dy * y}; });
}

Tensor log(const Tensor& x) {
  return record("log", compute(Unary::log, "log", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy / x}; });
}

Tensor tanh(const Tensor& x) {
  return record("tanh", compute(Unary::tanh, "tanh", x), {x},
                [](const Tensor& dy, const Tensor& y) { return Tensors{dy * (1 - y * y)}; });
}

Tensor erf(const Tensor& x) {
  return record("erf", compute(Unary::erf, "erf", x), {x}, [x = Saved(x)](const Tensor& dy) {
    return Tensors{dy * exp(-(x * x.get())) * (2 * std::numbers::inv_sqrtpi)};
  });
}

Tensor expm1(const Tensor& x) {
  return record("expm1", compute(Unary::expm1, "expm1", x), {x},
                [](const Tensor& dy, const Tensor& y) { return Tensors{dy * (y + 1)}; });
}

Tensor sin(const Tensor& x) {
  return record("sin", compute(Unary::sin, "sin", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy * cos(x)}; });
}

Tensor cos(const Tensor& x) {
  return record("cos", compute(Unary::cos, "cos", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{-dy * sin(x)}; });
}

Tensor floor(const Tensor& x) {
  return record("floor", compute(Unary::floor, "floor", x), {x},
                [](const Tensor& dy) { return Tensors{zeros_like(dy)}; });
}

Tensor round(const Tensor& x) {
  return record("round", compute(Unary::round, "round", x), {x},
                [](const Tensor& dy) { return Tensors{zeros_like(dy)}; });
}

Tensor sqrt(const Tensor& x) {
  return record("sqrt", compute(Unary::sqrt, "sqrt", x), {x},
                [](const Tensor& dy, const Tensor& y) { return Tensors{dy / y * 0.5}; });
}

Tensor rsqrt(const Tensor& x) {
  return record("rsqrt", compute(Unary::rsqrt, "rsqrt", x), {x},
                [](const Tensor& dy, const Tensor& y) { return Tensors{dy * pow(y, 3) * -0.5}; });
}

Tensor relu(const Tensor& x) {
  return record("relu", compute(Unary::relu, "relu", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy * Tensor(compute(Unary::step, "relu", x))}; });
}

Tensor abs(const Tensor& x) {
  return record("abs", compute(Unary::abs, "abs", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy * Tensor(compute(Unary::sign, "abs", x))}; });
}

Tensor sign(const Tensor& x) {
  return record("sign", compute(Unary::sign, "sign", x), {x}, [](const Tensor& dy) { return Tensors{zeros_like(dy)}; });
}

Tensor log1p(const Tensor& x) {
  return record("log1p", compute(Unary::log1p, "log1p", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy / (x + 1)}; });
}

Tensor pow(const Tensor& x, double exponent) {
  return record("pow", compute(Unary::pow, "pow", x, exponent), {x}, [x = Saved(x), exponent](const Tensor& dy) {
    return Tensors{exponent == 0 ? zeros_like(dy) : dy * pow(x, exponent - 1) * exponent};
  });
}

// If a factor of a derivative is not used, its operands are set to 1 first. Multiplying an infinite factor by 0 instead
// would give NaN in higher derivatives.
Tensor pow(const Tensor& x, const Tensor& y) {
  return record("pow", compute(Binary::pow, "pow", x, y), {x, y}, [x = Saved(x), y = Saved(y)](const Tensor& dy) {
    Tensor dx, d_exponent;
    if (x.requires_grad()) {
      const Tensor constant = equal(y, 0);
      dx = dy * where(constant, 0, y * pow(where(constant, 1, x), where(constant, 1, y) - 1));
    }
    if (y.requires_grad()) {
      const Tensor flat =
          equal(maximum(abs(x.get().detach()), -y.get().detach()), 0);  // 1 if x is 0 and y is at least 0
      const Tensor base = where(flat, 1, x);
      d_exponent = dy * (pow(base, y) * log(base));
    }
    return Tensors{dx, d_exponent};
  });
}

namespace {

// The share of the gradient that an operand gets: 1 if the operand was chosen, 1/2 if both operands are equal, and 1 if
// an operand is NaN.
Tensor chosen(const Tensor& not_chosen, const Tensor& equal_ones, DType dtype) {
  return 1 - cast(not_chosen, dtype) - 0.5 * cast(equal_ones, dtype);
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  return record("maximum", compute(Binary::maximum, "maximum", a, b), {a, b},
                [a = Saved(a), b = Saved(b)](const Tensor& dy) {
                  const Tensor ties = equal(a, b);
                  return Tensors{dy * chosen(a < b, ties, dy.dtype()), dy * chosen(a > b, ties, dy.dtype())};
                });
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return record("minimum", compute(Binary::minimum, "minimum", a, b), {a, b},
                [a = Saved(a), b = Saved(b)](const Tensor& dy) {
                  const Tensor ties = equal(a, b);
                  return Tensors{dy * chosen(a > b, ties, dy.dtype()), dy * chosen(a < b, ties, dy.dtype())};
                });
}

Tensor maximum(const Tensor& x, double c) {
  detail::check_float("maximum", x);
  return maximum(x, full({}, c, {x.dtype(), x.device()}));
}

Tensor minimum(const Tensor& x, double c) {
  detail::check_float("minimum", x);
  return minimum(x, full({}, c, {x.dtype(), x.device()}));
}

Tensor clamp(const Tensor& x, double low, double high) {
  detail::check_float("clamp", x);
  check(low <= high, "[clamp] expected low <= high, got {} and {}", low, high);
  const auto constant = [&](double c) { return full({}, c, {x.dtype(), x.device()}); };
  return where(x < low, constant(low), where(x > high, constant(high), x));
}

Tensor cast(const Tensor& x, DType dtype) {
  detail::check_defined("cast", x);
  check(is_real(dtype), "[cast] expected f32, f64 or bf16 to cast to, got {}", enum_name(dtype));
  if (x.dtype() == dtype) return x;
  Array y(x.shape(), dtype, x.device());
  kernels(y).cast(x.array(), y);
  return record("cast", y, {x}, [from = x.dtype()](const Tensor& dy) { return Tensors{cast(dy, from)}; });
}

}  // namespace plumb
