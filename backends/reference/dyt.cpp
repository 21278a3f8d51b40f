// DyT (Zhu et al. 2025): y = gamma tanh(alpha x) + beta.
#include <cmath>

#include "backends/reference/kernels.h"

namespace plumb::reference {

void dyt_forward(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Out& y) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    const std::int64_t D = gamma.numel();
    const double a = *alpha.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i)
      y.mutable_data<T>()[i] =
          static_cast<T>(gamma.data<T>()[i % D] * std::tanh(a * x.data<T>()[i]) + beta.data<T>()[i % D]);
  });
}

void dyt_backward(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Out& dx,
                  const Out& dalpha, const Out& dgamma, const Out& dbeta) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    const std::int64_t D = gamma.numel();
    const double a = *alpha.data<T>();
    double da = 0;
    std::vector<double> dg(static_cast<std::size_t>(D)), db(static_cast<std::size_t>(D));
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const auto column = static_cast<std::size_t>(i % D);
      const double t = std::tanh(a * x.data<T>()[i]), g = dy.data<T>()[i], u = gamma.data<T>()[i % D] * g * (1 - t * t);
      if (dx.defined()) dx.mutable_data<T>()[i] = static_cast<T>(a * u);
      da += u * x.data<T>()[i];
      dg[column] += g * t;
      db[column] += g;
    }
    if (dalpha.defined()) *dalpha.mutable_data<T>() = static_cast<T>(da);
    for (std::int64_t i = 0; i < D; ++i) {
      if (dgamma.defined()) dgamma.mutable_data<T>()[i] = static_cast<T>(dg[static_cast<std::size_t>(i)]);
      if (dbeta.defined()) dbeta.mutable_data<T>()[i] = static_cast<T>(db[static_cast<std::size_t>(i)]);
    }
  });
}

}  // namespace plumb::reference
