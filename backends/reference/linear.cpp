// Matrix products: three loops, sums in f64.
#include "backends/reference/kernels.h"

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

// c [M, N] = a b with element (m, k) of a at a[m * am + k * ak] and so on; c0 is added to each row where given.
template <class T>
void product(std::int64_t M, std::int64_t N, std::int64_t K, const T* a, std::int64_t am, std::int64_t ak, const T* b, std::int64_t bk,
             std::int64_t bn, const T* row, T* c) {
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = row ? row[n] : 0;
      for (std::int64_t k = 0; k < K; ++k) sum += static_cast<double>(a[m * am + k * ak]) * b[k * bk + n * bn];
      c[m * N + n] = static_cast<T>(sum);
    }
}

}  // namespace

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Array& y) {
  const std::int64_t M = y.dim(-2), N = y.dim(-1), K = a.dim(transpose_a ? -2 : -1), batches = y.numel() / std::max<std::int64_t>(M * N, 1);
  dispatch_float(y.dtype(), "matmul", [&]<class T>() {
    for (std::int64_t i = 0; i < batches; ++i)
      product<T>(M, N, K, a.data<T>() + batch_offset(i, y.shape(), a.shape()), transpose_a ? 1 : K, transpose_a ? M : 1,
                 b.data<T>() + batch_offset(i, y.shape(), b.shape()), transpose_b ? 1 : N, transpose_b ? K : 1, nullptr,
                 y.mutable_data<T>() + i * M * N);
  });
}

namespace {

// x w^T + b.
Array affine(const Array& x, const Array& w, const Array& b) {
  const std::int64_t N = w.dim(0), K = w.dim(1);
  const Array u = empty_like(x, {x.numel() / K, N});
  dispatch_float(x.dtype(), "linear", [&]<class T>() {
    product<T>(x.numel() / K, N, K, x.data<T>(), K, 1, w.data<T>(), 1, K, b.defined() ? b.data<T>() : nullptr, u.mutable_data<T>());
  });
  return u;
}

Array before(const LinearCall& call, const Array& x) {
  if (!call.gamma.defined()) return x;
  const Array h = empty_like(x);
  layer_norm_forward(x, call.gamma, call.beta, call.eps, h, call.mean, call.rstd);
  return h;
}

}  // namespace

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const Array& y) {
  const Array u = affine(before(call, x), w, b).reshaped(y.shape());
  switch (call.after) {
    case LinearCall::After::nothing:
      return unary(Unary::multiply, 1, u, y);
    case LinearCall::After::gelu:
      return gelu_forward(call.gelu, u, Array(), y, call.slope);
    case LinearCall::After::residual:
      return gated_residual_forward(call.skip, u, call.gate, call.row_scale, y);
  }
}

void linear_backward(const LinearCall& call, const Array& dy, const Array& x, const Array& w, const Array& b, const LinearGradients& g) {
  const std::int64_t N = w.dim(0), K = w.dim(1), R = x.numel() / K;
  const Array h = before(call, x);
  Array du = dy;
  if (call.after == LinearCall::After::gelu) {
    du = empty_like(dy);
    binary(Binary::multiply, dy, call.slope, du);
  } else if (call.after == LinearCall::After::residual) {
    du = empty_like(dy);
    gated_residual_backward(dy, affine(h, w, b).reshaped(dy.shape()), call.gate, call.row_scale, du, g.dgate);
  }
  dispatch_float(x.dtype(), "linear", [&]<class T>() {
    if (g.dw.defined()) product<T>(N, K, R, du.data<T>(), 1, N, h.data<T>(), K, 1, nullptr, g.dw.mutable_data<T>());
    if (g.db.defined())
      for (std::int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (std::int64_t r = 0; r < R; ++r) sum += du.data<T>()[r * N + n];
        g.db.mutable_data<T>()[n] = static_cast<T>(sum);
      }
    if (!g.dx.defined() && !g.dgamma.defined() && !g.dbeta.defined()) return;
    Array dx = empty_like(x);
    product<T>(R, K, N, du.data<T>(), N, 1, w.data<T>(), K, 1, nullptr, dx.mutable_data<T>());
    if (call.gamma.defined()) {
      const Array dh = dx;
      dx = empty_like(x);
      layer_norm_backward(dh, x, call.gamma, call.mean, call.rstd, dx, g.dgamma, g.dbeta);
    }
    if (g.dx.defined()) g.add_to_dx ? binary(Binary::add, dx, g.dx, g.dx) : unary(Unary::multiply, 1, dx, g.dx);
  });
}

}  // namespace plumb::reference
