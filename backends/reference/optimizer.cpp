// AdamW (Loshchilov, Hutter 2019), decoupled decay: p -= lr wd p; m, v updated; p -= lr (m / c1) / (sqrt(v / c2) + eps).
// SGD: g += wd p; v = momentum v + g; p -= lr (nesterov ? g + momentum v : v).
// Adagrad (Duchi, Hazan, Singer 2011): g += wd p; squares += g^2; p -= lr g / (sqrt(squares) + eps).
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {

void adamw(std::span<const AdamWUpdate> updates) {
  for (const AdamWUpdate& u : updates)
    dispatch_float(u.parameter.dtype(), "adamw", [&]<class T>() {
      const AdamWStep& s = u.step;
      for (std::int64_t i = 0; i < u.parameter.numel(); ++i) {
        const double g = s.gradient_scale * u.gradient.data<T>()[i];
        T &p = u.parameter.mutable_data<T>()[i], &m = u.moment1.mutable_data<T>()[i], &v = u.moment2.mutable_data<T>()[i];
        m = static_cast<T>(s.beta1 * m + (1 - s.beta1) * g);
        v = static_cast<T>(s.beta2 * v + (1 - s.beta2) * g * g);
        p = static_cast<T>(p - s.lr * s.weight_decay * p - s.lr * (m / s.correction1) / (std::sqrt(v / s.correction2) + s.eps));
      }
    });
}

void sgd(const SgdStep& s, const Array& gradient, const Out& parameter, const Out& velocity) {
  dispatch_float(parameter.dtype(), "sgd", [&]<class T>() {
    for (std::int64_t i = 0; i < parameter.numel(); ++i) {
      T& p = parameter.mutable_data<T>()[i];
      double g = s.gradient_scale * gradient.data<T>()[i] + s.weight_decay * p;
      if (velocity.defined()) {
        T& v = velocity.mutable_data<T>()[i];
        v = static_cast<T>(s.momentum * v + g);
        g = s.nesterov ? g + s.momentum * v : v;
      }
      p = static_cast<T>(p - s.lr * g);
    }
  });
}

void adagrad(const AdagradStep& s, const Array& gradient, const Out& parameter, const Out& squares) {
  dispatch_float(parameter.dtype(), "adagrad", [&]<class T>() {
    for (std::int64_t i = 0; i < parameter.numel(); ++i) {
      T &p = parameter.mutable_data<T>()[i], &sum = squares.mutable_data<T>()[i];
      const double g = s.gradient_scale * gradient.data<T>()[i] + s.weight_decay * p;
      sum = static_cast<T>(sum + g * g);
      p = static_cast<T>(p - s.lr * g / (std::sqrt(sum) + s.eps));
    }
  });
}

void sum_of_squares(std::span<const Array> arrays, const Out& sum) {
  double total = 0;
  for (const Array& x : arrays) {
    const Values v(x);
    for (std::int64_t i = 0; i < x.numel(); ++i) total += v[i] * v[i];
  }
  *sum.mutable_data<double>() = total;
}

}  // namespace plumb::reference
