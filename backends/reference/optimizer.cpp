// The optimizers, the moving average and the sum of squares. g is the gradient times the scale of the step.
//   AdamW (Loshchilov, Hutter 2019), decoupled decay: p -= lr wd p; then m and v are updated;
//     p -= lr (m / c1) / (sqrt(v / c2) + eps).
//   LAMB (You et al. 2020): m, v as in AdamW; u = (m / c1) / (sqrt(v / c2) + eps) + wd p; p -= lr r u,
//     r = |p| / |u|, or 1 if |p|, |u| or wd is 0.
//   SGD: g += wd p; v = momentum v + g; p -= lr (nesterov ? g + momentum v : v).
//   Adagrad (Duchi, Hazan, Singer 2011): g += wd p; squares += g^2; p -= lr g / (sqrt(squares) + eps).
#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {

void adamw(std::span<const AdamWUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  for (const AdamWUpdate& u : updates)
    dispatch_float(u.parameter.dtype(), "adamw", [&]<class T>() {
      const AdamWStep& s = u.step;
      for (std::int64_t i = 0; i < u.parameter.numel(); ++i) {
        const double g = now.scale * u.gradient.data<T>()[i];
        T &p = u.parameter.mutable_data<T>()[i], &m = u.moment1.mutable_data<T>()[i],
          &v = u.moment2.mutable_data<T>()[i];
        m = static_cast<T>(s.beta1 * m + (1 - s.beta1) * g);
        v = static_cast<T>(s.beta2 * v + (1 - s.beta2) * g * g);
        p = static_cast<T>(p - s.lr * s.weight_decay * p -
                           s.lr * (m / s.correction1) / (std::sqrt(v / s.correction2) + s.eps));
      }
    });
}

void lamb(std::span<const AdamWUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  for (const AdamWUpdate& u : updates)
    dispatch_float(u.parameter.dtype(), "lamb", [&]<class T>() {
      const AdamWStep& s = u.step;
      std::vector<double> direction(static_cast<std::size_t>(u.parameter.numel()));
      T* const p = u.parameter.mutable_data<T>();
      double of_p = 0, of_direction = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        const double g = now.scale * u.gradient.data<T>()[i];
        T &m = u.moment1.mutable_data<T>()[i], &v = u.moment2.mutable_data<T>()[i];
        m = static_cast<T>(s.beta1 * m + (1 - s.beta1) * g);
        v = static_cast<T>(s.beta2 * v + (1 - s.beta2) * g * g);
        direction[i] = (m / s.correction1) / (std::sqrt(v / s.correction2) + s.eps) + s.weight_decay * p[i];
        of_p += static_cast<double>(p[i]) * p[i], of_direction += direction[i] * direction[i];
      }
      const double trust =
          s.weight_decay > 0 && of_p > 0 && of_direction > 0 ? std::sqrt(of_p) / std::sqrt(of_direction) : 1;
      for (std::size_t i = 0; i < direction.size(); ++i) p[i] = static_cast<T>(p[i] - s.lr * trust * direction[i]);
    });
}

void sgd(std::span<const SgdUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  for (const SgdUpdate& u : updates)
    dispatch_float(u.parameter.dtype(), "sgd", [&]<class T>() {
      const SgdStep& s = u.step;
      for (std::int64_t i = 0; i < u.parameter.numel(); ++i) {
        T& p = u.parameter.mutable_data<T>()[i];
        double g = now.scale * u.gradient.data<T>()[i] + s.weight_decay * p;
        if (u.velocity.defined()) {
          T& v = u.velocity.mutable_data<T>()[i];
          v = static_cast<T>(s.momentum * v + g);
          g = s.nesterov ? g + s.momentum * v : v;
        }
        p = static_cast<T>(p - s.lr * g);
      }
    });
}

void adagrad(std::span<const AdagradUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  for (const AdagradUpdate& u : updates)
    dispatch_float(u.parameter.dtype(), "adagrad", [&]<class T>() {
      const AdagradStep& s = u.step;
      for (std::int64_t i = 0; i < u.parameter.numel(); ++i) {
        T &p = u.parameter.mutable_data<T>()[i], &sum = u.squares.mutable_data<T>()[i];
        const double g = now.scale * u.gradient.data<T>()[i] + s.weight_decay * p;
        sum = static_cast<T>(sum + g * g);
        p = static_cast<T>(p - s.lr * g / (std::sqrt(sum) + s.eps));
      }
    });
}

void ema(double rate, std::span<const EmaUpdate> updates) {
  for (const EmaUpdate& u : updates)
    dispatch_float(u.average.dtype(), "ema", [&]<class T>() {
      for (std::int64_t i = 0; i < u.average.numel(); ++i) {
        T& y = u.average.mutable_data<T>()[i];
        y = static_cast<T>(y + rate * (static_cast<double>(u.value.data<T>()[i]) - y));
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

void step_state(const Array& loss, const Array& squared_norm, double max_norm, const Array& before, const Out& state) {
  const double value = loss.defined() ? dispatch_float(loss.dtype(), "step_state",
                                                       [&]<class T>() { return static_cast<double>(*loss.data<T>()); })
                                      : 0;
  const double squares = *squared_norm.data<double>(), scale = max_norm / (std::sqrt(squares) + 1e-6);
  const bool goes_on = StepState::of(before).goes_on != 0 && std::isfinite(value) && std::isfinite(squares);
  double* const s = state.mutable_data<double>();
  s[0] = scale < 1 ? scale : 1, s[1] = goes_on, s[2] = value, s[3] = squares;
}

}  // namespace plumb::reference
