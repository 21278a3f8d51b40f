// Where the largest element is, and how often that is the label: integers and a number, which have no gradient.
#include <cmath>

#include "autograd/ops.h"

namespace plumb {

Tensor argmax(const Tensor& x, int axis, bool keep_axis) {
  detail::check_float("argmax", x);
  axis = detail::checked_axis("argmax", x.shape(), axis);
  const std::int64_t extent = x.dim(axis);
  check(extent > 0, "[argmax] expected a non-empty axis {}, got shape {}", axis, x.shape());
  std::int64_t inner = 1;  // elements between neighbours on the axis
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.dim(i);
  const Array in = on_host(x.array());
  Out y(Array(keep_axis ? x.shape().with(axis, 1) : x.shape().without(axis), DType::i64, in.device()));
  dispatch_float(x.dtype(), "argmax", [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const T* const first = in.data<T>() + i / inner * extent * inner + i % inner;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < extent && !std::isnan(first[best * inner]); ++k)
        if (first[k * inner] > first[best * inner] || std::isnan(first[k * inner])) best = k;
      y.mutable_data<std::int64_t>()[i] = best;
    }
  });
  return Tensor(to_device(y, x.device()));
}

double accuracy(const Tensor& logits, const Tensor& labels) {
  detail::check_logits("accuracy", logits);
  detail::check_labels("accuracy", logits, labels);
  return mean(cast(equal(argmax(logits), labels), DType::f64)).item();
}

}  // namespace plumb
