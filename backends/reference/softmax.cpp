// Softmax, log-softmax and cross-entropy over the last axis, with sums in f64.
#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

// The largest element of a row, and the sum of the exponentials relative to it. The two numbers stay apart, because
// their log-sum-exp would be rounded to the spacing of numbers near the largest element.
struct Exponentials {
  double top, sum;
};
template <class T>
Exponentials exponentials(const T* x, std::int64_t n) {
  const double top = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  return {top, sum};
}

// Calls f(row index, row length) for each row of x.
template <class F>
void each_row(const Array& x, F&& f) {
  const std::int64_t n = x.dim(-1);
  for (std::int64_t r = 0; r < x.numel() / std::max<std::int64_t>(n, 1); ++r) f(r, n);
}

// Returns the target probability of class c for row r.
template <class T>
double target_of(const Array& labels, const Array& target, double smoothing, std::int64_t r, std::int64_t c,
                 std::int64_t classes) {
  if (target.defined()) return target.data<T>()[r * classes + c];
  return (labels.data<std::int64_t>()[r] == c ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

}  // namespace

void softmax_forward(const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "softmax", [&]<class T>() {
    each_row(x, [&](std::int64_t r, std::int64_t n) {
      const auto [top, sum] = exponentials(x.data<T>() + r * n, n);
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
        y.mutable_data<T>()[i] = static_cast<T>(std::exp(x.data<T>()[i] - top) / sum);
    });
  });
}

void softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  dispatch_float(y.dtype(), "softmax", [&]<class T>() {
    each_row(y, [&](std::int64_t r, std::int64_t n) {
      double dot = 0;
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i) dot += static_cast<double>(y.data<T>()[i]) * dy.data<T>()[i];
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
        dx.mutable_data<T>()[i] = static_cast<T>(y.data<T>()[i] * (dy.data<T>()[i] - dot));
    });
  });
}

void softmax_second(const Array& g, const Array& dy, const Array& y, const Out& result) {
  dispatch_float(y.dtype(), "softmax", [&]<class T>() {
    each_row(y, [&](std::int64_t r, std::int64_t n) {
      double dot = 0, other = 0;
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i) {
        dot += static_cast<double>(y.data<T>()[i]) * dy.data<T>()[i];
        other += static_cast<double>(y.data<T>()[i]) * g.data<T>()[i];
      }
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
        result.mutable_data<T>()[i] =
            static_cast<T>(g.data<T>()[i] * (dy.data<T>()[i] - dot) - dy.data<T>()[i] * other);
    });
  });
}

void log_softmax_forward(const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "log_softmax", [&]<class T>() {
    each_row(x, [&](std::int64_t r, std::int64_t n) {
      const auto [top, sum] = exponentials(x.data<T>() + r * n, n);
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
        y.mutable_data<T>()[i] = static_cast<T>((x.data<T>()[i] - top) - std::log(sum));
    });
  });
}

void log_softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  dispatch_float(y.dtype(), "log_softmax", [&]<class T>() {
    each_row(y, [&](std::int64_t r, std::int64_t n) {
      double sum = 0;
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i) sum += dy.data<T>()[i];
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i)
        dx.mutable_data<T>()[i] = static_cast<T>(dy.data<T>()[i] - std::exp(y.data<T>()[i]) * sum);
    });
  });
}

void cross_entropy_forward(const Array& x, const Array& labels, const Array& target, double smoothing, const Out& loss,
                           const Out& sums) {
  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>() {
    double total = 0;
    each_row(x, [&](std::int64_t r, std::int64_t n) {
      const auto [top, sum] = exponentials(x.data<T>() + r * n, n);
      sums.mutable_data<T>()[2 * r] = static_cast<T>(top);
      sums.mutable_data<T>()[2 * r + 1] = static_cast<T>(sum);
      for (std::int64_t c = 0; c < n; ++c)
        total -= target_of<T>(labels, target, smoothing, r, c, n) * ((x.data<T>()[r * n + c] - top) - std::log(sum));
    });
    *loss.mutable_data<T>() = static_cast<T>(total / static_cast<double>(sums.numel() / 2));
  });
}

void cross_entropy_backward(const Array& dloss, const Array& x, const Array& labels, const Array& target,
                            double smoothing, const Array& sums, const Out& dx) {
  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>() {
    const double scale = *dloss.data<T>() / static_cast<double>(sums.numel() / 2);
    each_row(x, [&](std::int64_t r, std::int64_t n) {
      double total = 0;
      for (std::int64_t c = 0; c < n; ++c) total += target_of<T>(labels, target, smoothing, r, c, n);
      for (std::int64_t c = 0; c < n; ++c) {
        const double top = sums.data<T>()[2 * r],
                     p = std::exp(x.data<T>()[r * n + c] - top) / sums.data<T>()[2 * r + 1];
        dx.mutable_data<T>()[r * n + c] =
            static_cast<T>(scale * (p * total - target_of<T>(labels, target, smoothing, r, c, n)));
      }
    });
  });
}

}  // namespace plumb::reference
