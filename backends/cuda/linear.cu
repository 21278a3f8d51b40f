// matmul, and the linear layer with what stands before and after its product: the product by cuBLASLt with the bias, norm, GELU and junction by the
// kernels of their own files; backward, the passes over du, over x and over w that are left each do all that is to be done there. Weight gradients of
// many rows are 8 products of a slice of the rows each, and their sum in a fixed order: one alone has too few blocks to fill the device.
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm.cuh"
#include "backends/cuda/products.h"
#include "backends/cuda/through_host.h"
#include "backends/walk.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t slices = 8, sliced_from = 2048;  // rows

std::int64_t leading_rows(const Array& x) { return x.shape().with(-1, 1).numel(); }  // those of rows without elements too
Array scratch(const Array& like) { return empty_like(like); }
const void* address_of(const Array& a) { return a.defined() ? a.address() : nullptr; }
Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }

// y [R, N] = x w^T + b.
void affine(const Array& x, const Array& w, const Array& b, const Out& y) {
  const std::int64_t R = leading_rows(x), N = w.dim(0), K = w.dim(1);
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
  const std::int64_t R = leading_rows(x), N = dw.dim(0), K = dw.dim(1);
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

// What is done on the way to du, the gradient of u = before(x) w^T + b, while its columns are summed into db: du = dy slope (GELU), or dy times the
// gate and the scale of its sample. All but dy may be null.
template <class T>
struct OutputGradient {
  const T *dy, *slope, *gate, *row_scale;
  std::int64_t gates, rows_of_sample, N;
  T* du;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[1]) const {
    T g = dy[row * N + column];
    if (slope) g *= slope[row * N + column];
    if (gate) g *= gate[gates == 1 ? 0 : column];
    if (row_scale) g *= row_scale[row / rows_of_sample];
    if (du) du[row * N + column] = g;
    sums[0] += g;
  }
};

// Of a junction's gate, after du' = the gradient without the gate and dw' = du'^T x: with u = w x + b, the gate's gradient is the sum of du' u over
// the rows, which is the sum of dw' w over the columns, and db' b. So neither u nor its product with du' is ever there. A warp to a row n of w:
// dgate[n] = dw'[n] w[n] + db'[n] b[n], dw = gate dw', db = gate db', gated = gate w, which takes du' to the gradient of x.
template <class T>
struct Fold {
  const T *w, *b, *gate, *parts;  // parts [blocks, N] of db'
  std::int64_t gates, blocks, N, K;
  T *dw, *db, *dgate, *gated;  // dgate [N]; db, gated may be null
};

template <class T>
__global__ void fold_kernel(Fold<T> f) {
  const std::int64_t n = warp_row();
  if (n >= f.N) return;
  T bias = 0, dot = 0;
  if (f.parts)
    for (std::int64_t i = lane(); i < f.blocks; i += 32) bias += f.parts[i * f.N + n];
  bias = warp_sum(bias);
  const T gate = f.gate[f.gates == 1 ? 0 : n];
  for (std::int64_t i = n * f.K + lane(); i < (n + 1) * f.K; i += 32) {
    const T w = f.w[i], dw = f.dw[i];
    dot += dw * w;
    f.dw[i] = gate * dw;
    if (f.gated) f.gated[i] = gate * w;
  }
  dot = warp_sum(dot);
  if (lane() > 0) return;
  f.dgate[n] = dot + (f.b ? bias * f.b[n] : T{0});
  if (f.db) f.db[n] = gate * bias;
}

// What the device computes itself; the rest goes through the host.
bool of_one_type(const LinearCall& call, const Array& x, const Array& y) {
  return call.products == Precision::f32 && x.dtype() == y.dtype() && is_float(x.dtype());
}

// dx [R, K] = du w, or that added to it.
void input_gradient(const Array& du, const Array& w, const Out& dx, bool add) {
  multiply({.dtype = dx.dtype(),
            .count = 1,
            .M = leading_rows(du),
            .N = w.dim(1),
            .K = w.dim(0),
            .transpose_a = false,
            .transpose_b = false,
            .stride_a = 0,
            .stride_b = 0,
            .stride_y = 0,
            .add_to_y = add},
           du.address(), w.address(), nullptr, dx.mutable_address());
}

template <class T>
const T* optional(const Array& a) {
  return a.defined() ? elements<T>(a) : nullptr;
}

// dx, dgamma and dbeta by way of the gradient of the norm [R, K], which du w is; and h, the norm itself, if it is defined. `also` as in
// norm_backward.
template <class T>
void through_norm(const LinearCall& call, const LinearKept& kept, const Array& du, const Array& x, const Array& w, const LinearGradients& g,
                  const Out& h, RowSums<T>& sums, const ColumnSums<T>& also) {
  const Out dh(scratch(x));
  input_gradient(du, w, dh, false);
  norm_backward(NormBackward<T>{.dy = elements<T>(dh),
                                .x = elements<T>(x),
                                .gamma = elements<T>(call.gamma),
                                .mean = elements<T>(kept.mean),
                                .rstd = elements<T>(kept.rstd),
                                .dx = elements<T>(g.dx),
                                .added = g.add_to_dx ? elements<T>(g.dx) : nullptr,
                                .y = elements<T>(h)},
                elements<T>(call.beta), leading_rows(x), x.dim(-1), g.dgamma, g.dbeta, sums, also);
}

template <class T>
void backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& w, const Array& b,
              const LinearGradients& g) {
  const std::int64_t R = leading_rows(x), N = w.dim(0), K = w.dim(1);
  const bool norm = call.gamma.defined(), junction = call.after == LinearCall::After::residual, gelu = call.after == LinearCall::After::gelu;
  const bool gated = junction && call.gate.defined(), wants_x = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined();
  const auto again = [&] { return normed(call, x, norm ? Out(scratch(kept.mean)) : Out(), norm ? Out(scratch(kept.rstd)) : Out()); };
  OutputGradient<T> output{
      .dy = elements<T>(dy),
      .slope = gelu ? elements<T>(kept.slope) : nullptr,
      .gate = gated ? elements<T>(call.gate) : nullptr,
      .row_scale = junction ? optional<T>(call.row_scale) : nullptr,
      .gates = gated ? call.gate.numel() : 1,
      .rows_of_sample = junction && call.row_scale.defined() ? std::max<std::int64_t>(R / std::max<std::int64_t>(call.row_scale.numel(), 1), 1) : 1,
      .N = N,
      .du = nullptr};
  RowSums<T> sums;

  if (gated && g.dgate.defined()) {
    output.gate = nullptr;
    const Array du = output.row_scale ? scratch(dy) : dy;
    if (output.row_scale) output.du = elements<T>(Out(du));
    const std::array<Out, 1> nowhere{};  // the parts of db' are for the next kernel but one
    const T* const parts = output.du || b.defined() ? sums.template add<1>(output, R, N, nowhere) : nullptr;
    const Out dw = g.dw.defined() ? g.dw : Out(scratch(w)), of_rows = g.dgate.numel() == N ? g.dgate : Out(empty_like(w, {N}));
    weight_gradient(du, again(), dw);
    const Out scaled = wants_x ? Out(scratch(w)) : Out();
    launch_rows(N, fold_kernel<T>,
                Fold<T>{.w = elements<T>(w),
                        .b = optional<T>(b),
                        .gate = elements<T>(call.gate),
                        .parts = parts,
                        .gates = call.gate.numel(),
                        .blocks = RowSums<T>::blocks_of(R),
                        .N = N,
                        .K = K,
                        .dw = elements<T>(dw),
                        .db = elements<T>(g.db),
                        .dgate = elements<T>(of_rows),
                        .gated = elements<T>(scaled)});
    if (g.dgate.numel() != N) launch_add_all<T>(elements<T>(of_rows), N, 1.0, elements<T>(g.dgate));
    if (wants_x && norm)
      through_norm<T>(call, kept, du, x, scaled, g, Out(), sums, {});
    else if (wants_x)
      input_gradient(du, scaled, g.dx, g.add_to_dx);
    return sums.finish();
  }

  Array du = dy;
  if (output.slope || output.gate || output.row_scale) {
    du = scratch(dy);
    output.du = elements<T>(Out(du));
    sums.template add<1>(output, R, N, {g.db});
  }
  const bool adds_up_dy = !output.du && g.db.defined();
  if (norm && wants_x) {
    ColumnSums<T> also;
    if (adds_up_dy)
      also = {.x = elements<T>(dy),
              .rows = R,
              .columns = N,
              .rows_of_block = partial_rows_of(R),
              .partial = sums.parts(RowSums<T>::blocks_of(R), N, std::array<Out, 1>{g.db})};
    const Out h = g.dw.defined() ? Out(scratch(x)) : Out();
    through_norm(call, kept, du, x, w, g, h, sums, also);
    if (g.dw.defined()) weight_gradient(du, h, g.dw);
  } else {
    if (adds_up_dy) sums.template add<1>(output, R, N, {g.db});
    if (g.dw.defined()) weight_gradient(du, again(), g.dw);
    if (wants_x) input_gradient(du, w, g.dx, g.add_to_dx);
  }
  sums.finish();
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
  dispatch_float(x.dtype(), "linear", [&]<class T>() { backward<T>(call, kept, dy, x, w, b, g); });
}

}  // namespace plumb::cuda
