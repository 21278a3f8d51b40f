// Comparisons that return masks.
#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Converts to a dtype that kernels can compare: f32 or f64. f64 represents every bf16 and u8, and every i64 up to 2^53.
Array comparable(const Array& a) {
  if (is_float(a.dtype())) return a;
  Array wide(a.shape(), DType::f64, a.device());
  kernels(a).cast(a, wide);
  return wide;
}

// Returns the mask op(a, b), or op(b, a) if the order is swapped.
enum class Order { given, swapped };
Tensor mask(Binary op, const char* op_name, const Tensor& a, const Tensor& b, Order order = Order::given) {
  detail::check_alike(op_name, a, b);
  const Shape shape = broadcast(a.shape(), b.shape(), op_name);
  const Array left = comparable(a.array()), right = comparable(b.array());
  Array holds = empty_like(left, shape), y(shape, DType::u8, left.device());
  order == Order::given ? kernels(holds).binary(op, left, right, holds) : kernels(holds).binary(op, right, left, holds);
  kernels(y).cast(holds, y);
  return Tensor(y);
}

// Returns the number c in the dtype of x.
Tensor number(const char* op, const Tensor& x, double c) {
  detail::check_defined(op, x);
  const bool fits = is_real(x.dtype()) ||
                    (c == std::floor(c) && std::abs(c) <= 0x1p53 && (x.dtype() != DType::u8 || (0 <= c && c <= 255)));
  check(fits, "[{}] expected a number that {} can represent, to compare it with {} {}, got {}", op,
        enum_name(x.dtype()), enum_name(x.dtype()), x.shape(), c);
  return full({}, c, {x.dtype(), x.device()});
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return mask(Binary::equal, "equal", a, b); }
Tensor less(const Tensor& a, const Tensor& b) { return mask(Binary::less, "less", a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return mask(Binary::less_equal, "less_equal", a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return mask(Binary::less, "greater", a, b, Order::swapped); }
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return mask(Binary::less_equal, "greater_equal", a, b, Order::swapped);
}

Tensor equal(const Tensor& x, double c) { return equal(x, number("equal", x, c)); }
Tensor less(const Tensor& x, double c) { return less(x, number("less", x, c)); }
Tensor less_equal(const Tensor& x, double c) { return less_equal(x, number("less_equal", x, c)); }
Tensor greater(const Tensor& x, double c) { return greater(x, number("greater", x, c)); }
Tensor greater_equal(const Tensor& x, double c) { return greater_equal(x, number("greater_equal", x, c)); }

Tensor isnan(const Tensor& x) {
  detail::check_float("isnan", x);
  return equal(equal(x, x), 0);
}

Tensor isfinite(const Tensor& x) {
  detail::check_float("isfinite", x);
  return less(abs(x.detach()), std::numeric_limits<double>::infinity());
}

bool allclose(const Tensor& a, const Tensor& b, double relative, double absolute, bool equal_nan) {
  detail::check_defined("allclose", a);
  detail::check_defined("allclose", b);
  check(a.dtype() == b.dtype(), "[allclose] expected operands of one dtype, got {} {} and {} {}: cast() one of them",
        enum_name(a.dtype()), a.shape(), enum_name(b.dtype()), b.shape());
  check(relative >= 0 && absolute >= 0, "[allclose] expected tolerances of at least 0, got {} and {}", relative,
        absolute);
  const Shape shape = broadcast(a.shape(), b.shape(), "allclose");
  const auto values = [&](const Tensor& x) { return broadcast_to(Tensor(on_host(x.array())), shape).values(); };
  const std::vector<double> left = values(a), right = values(b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i] || (equal_nan && std::isnan(left[i]) && std::isnan(right[i]))) continue;
    const double distance = std::abs(left[i] - right[i]);
    if (!std::isfinite(distance) || distance > absolute + relative * std::abs(right[i])) return false;
  }
  return true;
}

}  // namespace plumb
