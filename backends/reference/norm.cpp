// Layer norm (Ba et al. 2016): y = gamma (x - mean) rstd + beta, rstd = (var + eps)^-1/2, var divided by D.
//   dx = rstd (u - mean(u) - h mean(u h)), u = gamma dy, h = (x - mean) rstd; dgamma = sum dy h; dbeta = sum dy.
// RMS norm (Zhang, Sennrich 2019): y = gamma x rstd, rstd = (mean(x^2) + eps)^-1/2; dx = rstd (u - h mean(u h)), h = x rstd.
#include <cmath>

#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

// Both backward passes: RMS norm is the one without mean (undefined) and beta.
void norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Array& dx, const Array& dgamma,
                   const Array& dbeta) {
  dispatch_float(x.dtype(), "norm", [&]<class T>() {
    const std::int64_t D = x.dim(-1), R = rstd.numel();
    std::vector<double> dg(static_cast<std::size_t>(D)), db(static_cast<std::size_t>(D));
    for (std::int64_t r = 0; r < R; ++r) {
      const T *xr = x.data<T>() + r * D, *dyr = dy.data<T>() + r * D;
      const double m = mean.defined() ? mean.data<T>()[r] : 0, s = rstd.data<T>()[r];
      double mean_u = 0, mean_uh = 0;
      for (std::int64_t i = 0; i < D; ++i) {
        const double h = (xr[i] - m) * s, u = static_cast<double>(gamma.data<T>()[i]) * dyr[i];
        mean_u += u / static_cast<double>(D);
        mean_uh += u * h / static_cast<double>(D);
        dg[static_cast<std::size_t>(i)] += dyr[i] * h;
        db[static_cast<std::size_t>(i)] += dyr[i];
      }
      if (!dx.defined()) continue;
      for (std::int64_t i = 0; i < D; ++i) {
        const double h = (xr[i] - m) * s, u = static_cast<double>(gamma.data<T>()[i]) * dyr[i];
        dx.mutable_data<T>()[r * D + i] = static_cast<T>(s * (u - (mean.defined() ? mean_u : 0) - h * mean_uh));
      }
    }
    for (std::int64_t i = 0; i < D; ++i) {
      if (dgamma.defined()) dgamma.mutable_data<T>()[i] = static_cast<T>(dg[static_cast<std::size_t>(i)]);
      if (dbeta.defined()) dbeta.mutable_data<T>()[i] = static_cast<T>(db[static_cast<std::size_t>(i)]);
    }
  });
}

}  // namespace

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Array& y, const Array& mean, const Array& rstd) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    const std::int64_t D = x.dim(-1);
    for (std::int64_t r = 0; r < rstd.numel(); ++r) {
      const T* xr = x.data<T>() + r * D;
      double m = 0, var = 0;
      for (std::int64_t i = 0; i < D; ++i) m += xr[i] / static_cast<double>(D);
      for (std::int64_t i = 0; i < D; ++i) var += (xr[i] - m) * (xr[i] - m) / static_cast<double>(D);
      const double s = 1 / std::sqrt(var + eps);
      mean.mutable_data<T>()[r] = static_cast<T>(m);
      rstd.mutable_data<T>()[r] = static_cast<T>(s);
      for (std::int64_t i = 0; i < D; ++i)
        y.mutable_data<T>()[r * D + i] = static_cast<T>(gamma.data<T>()[i] * ((xr[i] - m) * s) + beta.data<T>()[i]);
    }
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Array& dx,
                         const Array& dgamma, const Array& dbeta) {
  norm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
}

void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Array& y, const Array& rstd) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    const std::int64_t D = x.dim(-1);
    for (std::int64_t r = 0; r < rstd.numel(); ++r) {
      const T* xr = x.data<T>() + r * D;
      double square = 0;
      for (std::int64_t i = 0; i < D; ++i) square += static_cast<double>(xr[i]) * xr[i] / static_cast<double>(D);
      const double s = 1 / std::sqrt(square + eps);
      rstd.mutable_data<T>()[r] = static_cast<T>(s);
      for (std::int64_t i = 0; i < D; ++i) y.mutable_data<T>()[r * D + i] = static_cast<T>(gamma.data<T>()[i] * (xr[i] * s));
    }
  });
}

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Array& dx, const Array& dgamma) {
  norm_backward(dy, x, gamma, Array(), rstd, dx, dgamma, Array());
}

}  // namespace plumb::reference
