// matmul, and the linear layer with what stands before and after its product: the product by cuBLASLt with the bias, norm, GELU and junction by the
// kernels of their own files. Weight gradients of many rows are 8 products of a slice of the rows each, and their sum in a fixed order: one alone has
// too few blocks to fill the device.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/products.h"
#include "backends/cuda/through_host.h"
#include "backends/walk.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t slices = 8, sliced_from = 2048;  // rows

std::int64_t rows_of(const Array& x) { return x.shape().with(-1, 1).numel(); }
Array scratch(const Array& like) { return empty_like(like); }
const void* address_of(const Array& a) { return a.defined() ? a.address() : nullptr; }
Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }

// y [R, N] = x w^T + b.
void affine(const Array& x, const Array& w, const Array& b, const Out& y) {
  const std::int64_t R = rows_of(x), N = w.dim(0), K = w.dim(1);
  if (K == 0 && b.defined()) return broadcast(b, y);
  multiply({.dtype = x.dtype(),
            .count = 1,
            .M = R,
            .N = N,
            .K = K,
            .transpose_a = false,
            .transpose_b = true,
            .stride_a = 0,
            .stride_b = 0,
            .stride_y = 0,
            .bias = b.defined()},
           x.address(), w.address(), address_of(b), y.mutable_address());
}

// dw [N, K] = du^T x.
void weight_gradient(const Array& du, const Array& x, const Out& dw) {
  const std::int64_t R = rows_of(x), N = dw.dim(0), K = dw.dim(1);
  Product product{
      .dtype = x.dtype(), .count = 1, .M = N, .N = K, .K = R, .transpose_a = true, .transpose_b = false, .stride_a = 0, .stride_b = 0, .stride_y = 0};
  if (R < sliced_from) return multiply(product, du.address(), x.address(), nullptr, dw.mutable_address());
  const std::int64_t rows = R / slices, rest = R % slices, done = rows * slices;
  const Out parts(Array(Shape{slices, N, K}, dw.dtype(), Device::cuda));
  product.count = slices, product.K = rows, product.stride_a = rows * N, product.stride_b = rows * K, product.stride_y = N * K;
  multiply(product, du.address(), x.address(), nullptr, parts.mutable_address());
  if (rest > 0) {
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
    product.count = 1, product.K = rest, product.stride_a = product.stride_b = product.stride_y = 0, product.add_to_y = true;
    multiply(product, static_cast<const char*>(du.address()) + done * N * bytes, static_cast<const char*>(x.address()) + done * K * bytes, nullptr,
             parts.mutable_address());
  }
  reduce(Reduce::sum, parts, Out(dw.reshaped({1, N, K})));
}

// x, or its norm; mean and rstd are written if there is one.
Array normed(const LinearCall& call, const Array& x, const Out& mean, const Out& rstd) {
  if (!call.gamma.defined()) return x;
  const Out h(scratch(x));
  layer_norm_forward(x, call.gamma, call.beta, call.eps, h, mean, rstd);
  return h;
}

// What the device computes itself; the rest goes through the host.
bool of_one_type(const LinearCall& call, const Array& x, const Array& y) {
  return call.products == Precision::f32 && x.dtype() == y.dtype() && is_float(x.dtype());
}

}  // namespace

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Out& y) {
  if (y.numel() == 0) return;
  if (a.numel() == 0) return fill(0, y);  // an inner extent of 0
  const std::int64_t M = y.dim(-2), N = y.dim(-1), K = a.dim(transpose_a ? -2 : -1);
  const Shape matrices = leading(y.shape());
  const Walk<2> walk(matrices, {broadcast_strides(leading(a.shape()), matrices), broadcast_strides(leading(b.shape()), matrices)});
  const auto bytes = static_cast<std::int64_t>(size_of(y.dtype()));
  walk.run(0, matrices.numel(), [&](std::int64_t count, std::int64_t matrix, const Walk<2>::Offsets& at) {
    multiply({.dtype = y.dtype(),
              .count = count,
              .M = M,
              .N = N,
              .K = K,
              .transpose_a = transpose_a,
              .transpose_b = transpose_b,
              .stride_a = walk.inner_stride[0] * M * K,
              .stride_b = walk.inner_stride[1] * K * N,
              .stride_y = M * N},
             static_cast<const char*>(a.address()) + at[0] * M * K * bytes, static_cast<const char*>(b.address()) + at[1] * K * N * bytes, nullptr,
             static_cast<char*>(y.mutable_address()) + matrix * M * N * bytes);
  });
}

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const LinearKeptOut& kept, const Out& y) {
  if (!of_one_type(call, x, y)) return through_host<&Kernels::linear_forward>(call, x, w, b, kept, y);
  const Array h = normed(call, x, kept.mean, kept.rstd);
  switch (call.after) {
    case LinearCall::After::nothing:
      return affine(h, w, b, y);
    case LinearCall::After::gelu: {
      const Out u(scratch(y));
      affine(h, w, Array(), u);
      return gelu_forward(call.gelu, u, b, y, kept.slope);
    }
    case LinearCall::After::residual: {
      const Out u(scratch(y));
      affine(h, w, b, u);
      return gated_residual_forward(call.skip, u, call.gate, call.row_scale, y);
    }
  }
}

void linear_backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& w, const Array& b,
                     const LinearGradients& g) {
  if (!of_one_type(call, x, dy)) return through_host<&Kernels::linear_backward>(call, kept, dy, x, w, b, g);
  const std::int64_t R = rows_of(x), N = w.dim(0), K = w.dim(1);
  const bool junction = call.after == LinearCall::After::residual;
  Array h = x;
  if (g.dw.defined() || (junction && g.dgate.defined()))
    h = normed(call, x, call.gamma.defined() ? Out(scratch(kept.mean)) : Out(), call.gamma.defined() ? Out(scratch(kept.rstd)) : Out());
  Array du = dy;
  if (call.after == LinearCall::After::gelu) {
    du = scratch(dy);
    binary(Binary::multiply, dy, kept.slope, du);
  } else if (junction && (call.gate.defined() || call.row_scale.defined())) {
    du = scratch(dy);
    const Out u = g.dgate.defined() ? Out(scratch(dy)) : Out();
    if (u.defined()) affine(h, w, b, u);
    gated_residual_backward(dy, u, call.gate, call.row_scale, du, g.dgate);
  }
  if (g.dw.defined()) weight_gradient(du, h, g.dw);
  if (g.db.defined()) reduce(Reduce::sum, du.reshaped({R, N}), Out(g.db.reshaped({1, N})));
  if (!g.dx.defined() && !g.dgamma.defined() && !g.dbeta.defined()) return;
  const bool norm = call.gamma.defined();
  const Out to = norm ? Out(scratch(x)) : g.dx;
  multiply({.dtype = x.dtype(),
            .count = 1,
            .M = R,
            .N = K,
            .K = N,
            .transpose_a = false,
            .transpose_b = false,
            .stride_a = 0,
            .stride_b = 0,
            .stride_y = 0,
            .add_to_y = !norm && g.add_to_dx},
           du.address(), w.address(), nullptr, to.mutable_address());
  if (!norm) return;
  const Out dx = g.dx.defined() && g.add_to_dx ? Out(scratch(x)) : g.dx;
  layer_norm_backward(to, x, call.gamma, kept.mean, kept.rstd, dx, g.dgamma, g.dbeta);
  if (g.dx.defined() && g.add_to_dx) binary(Binary::add, dx, g.dx, g.dx);
}

}  // namespace plumb::cuda
