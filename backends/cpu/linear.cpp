// Products of arrays: matmul and the linear layer, by oneDNN.
#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"

namespace plumb::cpu {

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Array& y) {
  product(a.shape(), a.data<float>(), transpose_a, b.shape(), b.data<float>(), transpose_b, nullptr, y.shape(), y.mutable_data<float>());
}

void linear_forward(const Array& x, const Array& w, const Array& b, const Array& y) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = N ? y.numel() / N : 0;
  product({R, K}, x.data<float>(), false, w.shape(), w.data<float>(), true, b.defined() ? b.data<float>() : nullptr, {R, N}, y.mutable_data<float>());
}

void linear_backward(const Array& dy, const Array& x, const Array& w, const Array& dx, const Array& dw, const Array& db) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = N ? dy.numel() / N : 0;
  if (dx.defined()) product({R, N}, dy.data<float>(), false, w.shape(), w.data<float>(), false, nullptr, {R, K}, dx.mutable_data<float>());
  if (dw.defined()) product_over_rows(N, K, R, dy.data<float>(), x.data<float>(), dw.mutable_data<float>());
  if (db.defined()) sum_rows(dy.data<float>(), R, N, db.mutable_data<float>());
}

}  // namespace plumb::cpu
