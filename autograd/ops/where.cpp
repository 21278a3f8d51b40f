// Selection by a mask: y = mask ? a : b.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  detail::check_operands("where", a, b);
  detail::check_defined("where", mask);
  check(mask.dtype() == DType::u8, "[where] expected a u8 mask, got {} {}: use a comparison, as in where(x > 0, a, b)",
        enum_name(mask.dtype()), mask.shape());
  check(mask.device() == a.device(), "[where] expected a mask on {} like the operands, got one on {}",
        enum_name(a.device()), enum_name(mask.device()));
  Array y = empty_like(a.array(), broadcast(mask.shape(), broadcast(a.shape(), b.shape(), "where"), "where"));
  kernels(y).where(mask.array(), a.array(), b.array(), y);
  return record("where", y, {a, b}, [mask = Saved(mask)](const Tensor& dy) {
    const Tensor zero = zeros_like(dy);
    return Tensors{where(mask, dy, zero), where(mask, zero, dy)};
  });
}

Tensor where(const Tensor& mask, const Tensor& a, double b) {
  detail::check_float("where", a);
  return where(mask, a, full({}, b, {a.dtype(), a.device()}));
}

Tensor where(const Tensor& mask, double a, const Tensor& b) {
  detail::check_float("where", b);
  return where(mask, full({}, a, {b.dtype(), b.device()}), b);
}

Tensor where(const Tensor& mask, double a, double b, DType dtype) {
  detail::check_defined("where", mask);
  return where(mask, full({}, a, {dtype, mask.device()}), full({}, b, {dtype, mask.device()}));
}

}  // namespace plumb
