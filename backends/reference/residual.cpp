// The residual junction y = skip + row_scale[sample] * gate * branch, dropout of elements, and the scales that drop
// whole samples or heads.
#include <algorithm>
#include <vector>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold,
             std::uint64_t first_element, const Out& y) {
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    const double keep_scale = 1 / (1 - threshold / 65536.0);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::uint64_t element = first_element + static_cast<std::uint64_t>(i);
      const bool dropped =
          draw16(element_draw(key, step, Purpose::dropout, element / 8), static_cast<int>(element % 8)) < threshold;
      y.mutable_data<T>()[i] = dropped ? T{0} : static_cast<T>(x.data<T>()[i] * keep_scale);
    }
  });
}

void drop_path_scale(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample, std::uint32_t branch,
                     std::uint32_t threshold, double kept, const Out& y) {
  const OutValues scale(y);
  for (std::int64_t b = 0; b < y.numel(); ++b) {
    const Draw draw = philox(
        {step, static_cast<std::uint32_t>(Purpose::drop_path), first_sample + static_cast<std::uint32_t>(b), branch},
        key);
    scale.set(b, draw16(draw, 0) < threshold ? 0 : kept);
  }
}

void drop_head_scale(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample, std::uint32_t threshold,
                     const Out& y) {
  const OutValues scale(y);
  const std::int64_t heads = y.dim(2);
  std::vector<std::uint32_t> draws(static_cast<std::size_t>(heads));
  for (std::int64_t b = 0; b < y.dim(0); ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Draw draw = philox({step, static_cast<std::uint32_t>(Purpose::drop_head),
                                first_sample + static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(h / 8)},
                               key);
      draws[static_cast<std::size_t>(h)] = draw16(draw, static_cast<int>(h % 8));
    }
    const std::uint32_t keep_from = std::min(threshold, *std::ranges::max_element(draws));
    const auto kept =
        static_cast<double>(std::ranges::count_if(draws, [&](std::uint32_t d) { return d >= keep_from; }));
    for (std::int64_t h = 0; h < heads; ++h)
      scale.set(b * heads + h, draws[static_cast<std::size_t>(h)] >= keep_from ? static_cast<double>(heads) / kept : 0);
  }
}

namespace {

// The number of elements of x [B, ..] with the same factor of row_scale [B].
std::int64_t elements_per_sample(const Array& row_scale, const Array& x) {
  return row_scale.defined() && row_scale.numel() > 0 ? x.numel() / row_scale.numel() : 1;
}

}  // namespace

void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale,
                            const Out& y) {
  const Values x(skip), f(branch), gates(gate), scales(row_scale);
  const OutValues result(y);
  const std::int64_t per_sample = elements_per_sample(row_scale, y), per_gate = elements_per_gate(gate, y.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const double g = gate.defined() ? gates[i / per_gate % gate.numel()] : 1,
                 s = row_scale.defined() ? scales[i / per_sample] : 1;
    result.set(i, x[i] + s * g * f[i]);
  }
}

void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale,
                             const Out& dbranch, const Out& dgate) {
  const Values d(dy), f(branch), gates(gate), scales(row_scale);
  const OutValues df(dbranch), dg(dgate);
  const std::int64_t per_sample = elements_per_sample(row_scale, dy), per_gate = elements_per_gate(gate, dy.shape());
  std::vector<double> sum(static_cast<std::size_t>(dgate.defined() ? dgate.numel() : 0));
  for (std::int64_t i = 0; i < dy.numel(); ++i) {
    const double g = gate.defined() ? gates[i / per_gate % gate.numel()] : 1,
                 s = row_scale.defined() ? scales[i / per_sample] : 1;
    if (dbranch.defined()) df.set(i, s * g * d[i]);
    if (dgate.defined()) sum[static_cast<std::size_t>(i / per_gate % dgate.numel())] += s * d[i] * f[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) dg.set(static_cast<std::int64_t>(i), sum[i]);
}

}  // namespace plumb::reference
