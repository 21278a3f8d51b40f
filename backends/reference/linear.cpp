// Matrix products and the linear layer. The products are three nested loops with sums in f64.
#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// Returns the offset in `a` of the matrix for batch index i. A batch index counts the positions on the leading axes of
// y.
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

// A matrix view: element (i, j) is data[i * row + j * column].
struct Matrix {
  const double* data;
  std::int64_t row, column;
  double operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

// Computes c [M, N] = a [M, K] b [K, N] + bias and writes it from element `offset` of c on. bias is [N] or undefined.
void product(std::int64_t M, std::int64_t N, std::int64_t K, const Matrix& a, const Matrix& b, const Array& bias,
             const Out& c, std::int64_t offset = 0) {
  const Values start(bias);
  const OutValues result(c);
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = bias.defined() ? start[n] : 0;
      for (std::int64_t k = 0; k < K; ++k) sum += a(m, k) * b(k, n);
      result.set(offset + m * N + n, sum);
    }
}

}  // namespace

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Out& y) {
  const std::int64_t M = y.dim(-2), N = y.dim(-1), K = a.dim(transpose_a ? -2 : -1),
                     batches = y.numel() / std::max<std::int64_t>(M * N, 1);
  const std::vector<double> left = to_vector(a), right = to_vector(b);
  for (std::int64_t i = 0; i < batches; ++i)
    product(M, N, K, {left.data() + batch_offset(i, y.shape(), a.shape()), transpose_a ? 1 : K, transpose_a ? M : 1},
            {right.data() + batch_offset(i, y.shape(), b.shape()), transpose_b ? 1 : N, transpose_b ? K : 1}, Array(),
            y, i * M * N);
}

namespace {

// Returns the values of an operand, rounded to bf16 if the product runs in bf16.
std::vector<double> operand(const LinearCall& call, const Array& a) {
  std::vector<double> values = to_vector(a);
  if (call.products == Precision::bf16)
    for (double& v : values) v = bfloat16(v);
  return values;
}

// Allocates an intermediate result between two kernels of this file. If products run in bf16, the intermediate result
// is f64, so that the final result is rounded only once.
Array between(const LinearCall& call, const Array& like, const Shape& shape) {
  return Array(shape, call.products == Precision::bf16 ? DType::f64 : like.dtype(), like.device());
}

std::int64_t rows_of(const Array& x) { return x.shape().with(-1, 1).numel(); }

// Returns x w^T + b.
Array affine(const LinearCall& call, const Array& x, const Array& w, const Array& b) {
  const std::int64_t N = w.dim(0), K = w.dim(1);
  Array u = between(call, x, {rows_of(x), N});
  const std::vector<double> inputs = operand(call, x), weights = operand(call, w);
  product(rows_of(x), N, K, {inputs.data(), K, 1}, {weights.data(), 1, K}, b, u);
  return u;
}

Array before(const LinearCall& call, const Array& x, const Out& mean, const Out& rstd) {
  if (!call.gamma.defined()) return x;
  Array h = empty_like(x);
  layer_norm_forward(x, call.gamma, call.beta, call.eps, h, mean, rstd);
  return h;
}

}  // namespace

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const LinearKeptOut& kept,
                    const Out& y) {
  const Array u = affine(call, before(call, x, kept.mean, kept.rstd), w, b).reshaped(y.shape());
  switch (call.after) {
    case LinearCall::After::nothing:
      return cast(u, y);
    case LinearCall::After::gelu:
      return gelu_forward(call.gelu, u, Array(), y, kept.slope);
    case LinearCall::After::residual:
      return gated_residual_forward(call.skip, u, call.gate, call.row_scale, y);
  }
}

void linear_backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& w,
                     const Array& b, const LinearGradients& g) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = rows_of(x);
  const Array like = call.gamma.defined() ? kept.mean : Array();
  const Array h =
      before(call, x, like.defined() ? Out(empty_like(like)) : Out(), like.defined() ? Out(empty_like(like)) : Out());
  Array du = dy;
  if (call.after == LinearCall::After::gelu) {
    du = between(call, dy, dy.shape());
    binary(Binary::multiply, dy, kept.slope, du);
  } else if (call.after == LinearCall::After::residual) {
    du = between(call, dy, dy.shape());
    gated_residual_backward(dy, affine(call, h, w, b).reshaped(dy.shape()), call.gate, call.row_scale, du, g.dgate);
  }
  const std::vector<double> gradients = operand(call, du), inputs = operand(call, h), weights = operand(call, w);
  if (g.dw.defined()) product(N, K, R, {gradients.data(), 1, N}, {inputs.data(), K, 1}, Array(), g.dw);
  const std::vector<double> exact = to_vector(du);
  const OutValues bias_gradient(g.db);
  for (std::int64_t n = 0; n < (g.db.defined() ? N : 0); ++n) {
    double sum = 0;
    for (std::int64_t r = 0; r < R; ++r) sum += exact[static_cast<std::size_t>(r * N + n)];
    bias_gradient.set(n, sum);
  }
  if (!g.dx.defined() && !g.dgamma.defined() && !g.dbeta.defined()) return;
  Array dx = between(call, x, x.shape());
  product(R, K, N, {gradients.data(), N, 1}, {weights.data(), K, 1}, Array(), dx);
  if (call.gamma.defined()) {
    const Array dh = dx;
    dx = empty_like(x);
    layer_norm_backward(dh, x, call.gamma, kept.mean, kept.rstd, dx, g.dgamma, g.dbeta);
  }
  if (g.dx.defined()) g.add_to_dx ? binary(Binary::add, dx, g.dx, g.dx) : cast(dx, g.dx);
}

}  // namespace plumb::reference
