// The residual junction y = skip + row_scale[sample] * gate * branch, and dropout.
#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first_element, const Out& y) {
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    const double keep_scale = 1 / (1 - threshold / 65536.0);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::uint64_t element = first_element + static_cast<std::uint64_t>(i);
      const bool dropped = draw16(element_draw(key, step, Purpose::dropout, element / 8), static_cast<int>(element % 8)) < threshold;
      y.mutable_data<T>()[i] = dropped ? T{0} : static_cast<T>(x.data<T>()[i] * keep_scale);
    }
  });
}

void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale, const Out& y) {
  const Values x(skip), f(branch), gates(gate), scales(row_scale);
  const OutValues result(y);
  const std::int64_t per_sample = row_scale.defined() ? y.numel() / row_scale.numel() : 1;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const double g = gate.defined() ? gates[i % gate.numel()] : 1, s = row_scale.defined() ? scales[i / per_sample] : 1;
    result.set(i, x[i] + s * g * f[i]);
  }
}

void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale, const Out& dbranch, const Out& dgate) {
  const Values d(dy), f(branch), gates(gate), scales(row_scale);
  const OutValues df(dbranch), dg(dgate);
  const std::int64_t per_sample = row_scale.defined() ? dy.numel() / row_scale.numel() : 1;
  std::vector<double> sum(static_cast<std::size_t>(dgate.defined() ? dgate.numel() : 0));
  for (std::int64_t i = 0; i < dy.numel(); ++i) {
    const double g = gate.defined() ? gates[i % gate.numel()] : 1, s = row_scale.defined() ? scales[i / per_sample] : 1;
    if (dbranch.defined()) df.set(i, s * g * d[i]);
    if (dgate.defined()) sum[static_cast<std::size_t>(i % dgate.numel())] += s * d[i] * f[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) dg.set(static_cast<std::int64_t>(i), sum[i]);
}

}  // namespace plumb::reference
