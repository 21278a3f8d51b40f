// Matrix products: three loops, sums in f64.
#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// Offset of the matrix of `a` that batch index i (of y's leading axes) uses.
std::int64_t batch_offset(std::int64_t i, const Shape& y, const Shape& a) {
  std::int64_t index = 0, stride = a[-1] * a[-2];
  for (int axis = 3; axis <= y.rank(); ++axis) {
    const std::int64_t coordinate = i % y[-axis];
    i /= y[-axis];
    if (axis > a.rank()) continue;
    if (a[-axis] != 1) index += coordinate * stride;
    stride *= a[-axis];
  }
  return index;
}

// Element (i, j) is at data[i * row + j * column].
struct Matrix {
  const double* data;
  std::int64_t row, column;
  double operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

// c [M, N] = a [M, K] b [K, N] + bias, from element `offset` of c on; bias [N] or undefined.
void product(std::int64_t M, std::int64_t N, std::int64_t K, const Matrix& a, const Matrix& b, const Array& bias, const Array& c,
             std::int64_t offset = 0) {
  const Values start(bias), result(c);
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = bias.defined() ? start[n] : 0;
      for (std::int64_t k = 0; k < K; ++k) sum += a(m, k) * b(k, n);
      result.set(offset + m * N + n, sum);
    }
}

}  // namespace

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Array& y) {
  const std::int64_t M = y.dim(-2), N = y.dim(-1), K = a.dim(transpose_a ? -2 : -1), batches = y.numel() / std::max<std::int64_t>(M * N, 1);
  const std::vector<double> left = to_vector(a), right = to_vector(b);
  for (std::int64_t i = 0; i < batches; ++i)
    product(M, N, K, {left.data() + batch_offset(i, y.shape(), a.shape()), transpose_a ? 1 : K, transpose_a ? M : 1},
            {right.data() + batch_offset(i, y.shape(), b.shape()), transpose_b ? 1 : N, transpose_b ? K : 1}, Array(), y, i * M * N);
}

void linear_forward(const Array& x, const Array& w, const Array& b, const Array& y) {
  const std::int64_t N = w.dim(0), K = w.dim(1);
  const std::vector<double> inputs = to_vector(x), weights = to_vector(w);
  product(x.numel() / K, N, K, {inputs.data(), K, 1}, {weights.data(), 1, K}, b, y);
}

void linear_backward(const Array& dy, const Array& x, const Array& w, const Array& dx, const Array& dw, const Array& db) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.numel() / K;
  const std::vector<double> gradients = to_vector(dy), inputs = to_vector(x), weights = to_vector(w);
  if (dx.defined()) product(R, K, N, {gradients.data(), N, 1}, {weights.data(), K, 1}, Array(), dx);
  if (dw.defined()) product(N, K, R, {gradients.data(), 1, N}, {inputs.data(), K, 1}, Array(), dw);
  const Values bias_gradient(db);
  for (std::int64_t n = 0; n < (db.defined() ? N : 0); ++n) {
    double sum = 0;
    for (std::int64_t r = 0; r < R; ++r) sum += gradients[static_cast<std::size_t>(r * N + n)];
    bias_gradient.set(n, sum);
  }
}

}  // namespace plumb::reference
