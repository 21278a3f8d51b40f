// The position of the largest or smallest element, and accuracy. The results have no gradient.
#include <cmath>
#include <functional>

#include "autograd/ops.h"

namespace plumb {

namespace {

// Returns the index along the axis of the element that comes first by `before`. The first NaN comes before all numbers.
template <class Before>
Tensor first_of_all(const char* op, const Tensor& x, int axis, bool keep_axis, Before before) {
  detail::check_float(op, x);
  axis = detail::checked_axis(op, x.shape(), axis);
  const std::int64_t extent = x.dim(axis);
  check(extent > 0, "[{}] expected a non-empty axis {}, got shape {}", op, axis, x.shape());
  std::int64_t inner = 1;  // distance of neighbours on the axis
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.dim(i);
  const Array in = on_host(x.array());
  Out y(Array(keep_axis ? x.shape().with(axis, 1) : x.shape().without(axis), DType::i64, in.device()));
  dispatch_float(x.dtype(), op, [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const T* const first = in.data<T>() + i / inner * extent * inner + i % inner;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < extent && !std::isnan(first[best * inner]); ++k)
        if (before(first[k * inner], first[best * inner]) || std::isnan(first[k * inner])) best = k;
      y.mutable_data<std::int64_t>()[i] = best;
    }
  });
  return Tensor(to_device(y, x.device()));
}

}  // namespace

Tensor argmax(const Tensor& x, int axis, bool keep_axis) {
  return first_of_all("argmax", x, axis, keep_axis, std::greater<>());
}
Tensor argmin(const Tensor& x, int axis, bool keep_axis) {
  return first_of_all("argmin", x, axis, keep_axis, std::less<>());
}

double accuracy(const Tensor& logits, const Tensor& labels) {
  detail::check_logits("accuracy", logits);
  detail::check_labels("accuracy", logits, labels);
  return mean(cast(equal(argmax(logits), labels), DType::f64)).item();
}

}  // namespace plumb
