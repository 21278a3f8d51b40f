// Elementwise primitives. The engine sums a gradient of broadcast shape to its input's, so the formulas do not.
#include <numbers>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {

namespace detail {

void check_float(const char* op, const Tensor& x) {
  check_defined(op, x);
  check(is_float(x.dtype()), "[{}] expected f32 or f64, got {} {}{}", op, name(x.dtype()), x.shape(),
        x.dtype() == DType::bf16 ? ": cast() it to f32 first" : "");
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check_float(op, a);
  check_float(op, b);
  check(a.dtype() == b.dtype(), "[{}] expected operands of one dtype, got {} {} and {} {}", op, name(a.dtype()), a.shape(), name(b.dtype()),
        b.shape());
  check(a.device() == b.device(), "[{}] expected operands on one device, got {} on {} and {} on {}", op, a.shape(), name(a.device()), b.shape(),
        name(b.device()));
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
  return record("subtract", compute(Binary::subtract, "subtract", a, b), {a, b}, [](const Tensor& dy) { return Tensors{dy, -dy}; });
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  return record("multiply", compute(Binary::multiply, "multiply", a, b), {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& dy) {
    return Tensors{a.requires_grad() ? dy * b : Tensor(), b.requires_grad() ? dy * a : Tensor()};
  });
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  return record("divide", compute(Binary::divide, "divide", a, b), {a, b}, [b = Saved(b)](const Tensor& dy, const Tensor& y) {
    const Tensor da = dy / b;
    return Tensors{da, b.requires_grad() ? -da * y : Tensor()};
  });
}

Tensor operator+(const Tensor& x, double c) {
  return record("add", compute(Unary::add, "add", x, c), {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

Tensor operator*(const Tensor& x, double c) {
  return record("multiply", compute(Unary::multiply, "multiply", x, c), {x}, [c](const Tensor& dy) { return Tensors{dy * c}; });
}

Tensor exp(const Tensor& x) {
  return record("exp", compute(Unary::exp, "exp", x), {x}, [](const Tensor& dy, const Tensor& y) { return Tensors{dy * y}; });
}

Tensor log(const Tensor& x) {
  return record("log", compute(Unary::log, "log", x), {x}, [x = Saved(x)](const Tensor& dy) { return Tensors{dy / x}; });
}

Tensor tanh(const Tensor& x) {
  return record("tanh", compute(Unary::tanh, "tanh", x), {x}, [](const Tensor& dy, const Tensor& y) { return Tensors{dy * (1 - y * y)}; });
}

Tensor erf(const Tensor& x) {
  return record("erf", compute(Unary::erf, "erf", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy * exp(-(x * x.get())) * (2 * std::numbers::inv_sqrtpi)}; });
}

Tensor sqrt(const Tensor& x) {
  return record("sqrt", compute(Unary::sqrt, "sqrt", x), {x}, [](const Tensor& dy, const Tensor& y) { return Tensors{dy / y * 0.5}; });
}

Tensor rsqrt(const Tensor& x) {
  return record("rsqrt", compute(Unary::rsqrt, "rsqrt", x), {x}, [](const Tensor& dy, const Tensor& y) { return Tensors{dy * pow(y, 3) * -0.5}; });
}

Tensor relu(const Tensor& x) {
  return record("relu", compute(Unary::relu, "relu", x), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy * Tensor(compute(Unary::step, "relu", x))}; });
}

Tensor pow(const Tensor& x, double exponent) {
  return record("pow", compute(Unary::pow, "pow", x, exponent), {x}, [x = Saved(x), exponent](const Tensor& dy) {
    return Tensors{exponent == 0 ? zeros_like(dy) : dy * pow(x, exponent - 1) * exponent};
  });
}

Tensor cast(const Tensor& x, DType dtype) {
  detail::check_defined("cast", x);
  check(is_real(x.dtype()), "[cast] expected f32, f64 or bf16, got {} {}", name(x.dtype()), x.shape());
  check(is_real(dtype), "[cast] expected f32, f64 or bf16 to cast to, got {}", name(dtype));
  if (x.dtype() == dtype) return x;
  Array y(x.shape(), dtype, x.device());
  kernels(y).cast(x.array(), y);
  return record("cast", y, {x}, [from = x.dtype()](const Tensor& dy) { return Tensors{cast(dy, from)}; });
}

}  // namespace plumb
