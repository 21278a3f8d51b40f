// The residual junction y = skip + row_scale[sample] * gate * branch, and dropout.
#include "backends/reference/kernels.h"

namespace plumb::reference {

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first_element, const Array& y) {
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    const double keep_scale = 1 / (1 - threshold / 65536.0);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::uint64_t element = first_element + static_cast<std::uint64_t>(i);
      const bool dropped = draw16(element_draw(key, step, Purpose::dropout, element / 8), static_cast<int>(element % 8)) < threshold;
      y.mutable_data<T>()[i] = dropped ? T{0} : static_cast<T>(x.data<T>()[i] * keep_scale);
    }
  });
}

void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale, const Array& y) {
  dispatch_float(y.dtype(), "gated_residual", [&]<class T>() {
    const std::int64_t per_sample = row_scale.defined() ? y.numel() / row_scale.numel() : 1;
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const T g = gate.defined() ? gate.data<T>()[i % gate.numel()] : T{1}, s = row_scale.defined() ? row_scale.data<T>()[i / per_sample] : T{1};
      y.mutable_data<T>()[i] = skip.data<T>()[i] + s * g * branch.data<T>()[i];
    }
  });
}

void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale, const Array& dbranch,
                             const Array& dgate) {
  dispatch_float(dy.dtype(), "gated_residual", [&]<class T>() {
    const std::int64_t per_sample = row_scale.defined() ? dy.numel() / row_scale.numel() : 1;
    std::vector<double> sum(static_cast<std::size_t>(dgate.defined() ? dgate.numel() : 0));
    for (std::int64_t i = 0; i < dy.numel(); ++i) {
      const T g = gate.defined() ? gate.data<T>()[i % gate.numel()] : T{1}, s = row_scale.defined() ? row_scale.data<T>()[i / per_sample] : T{1};
      if (dbranch.defined()) dbranch.mutable_data<T>()[i] = s * g * dy.data<T>()[i];
      if (dgate.defined()) sum[static_cast<std::size_t>(i % dgate.numel())] += static_cast<double>(s) * dy.data<T>()[i] * branch.data<T>()[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) dgate.mutable_data<T>()[i] = static_cast<T>(sum[i]);
  });
}

}  // namespace plumb::reference
