// matmul, and the linear layer with the operations before and after its product. cuBLASLt computes the product with the
// bias. Norm, GELU and residual junction use the kernels of their own files. The backward pass makes one pass over du,
// one over x and one over w. Each pass does all the work on its array.
//
// A weight gradient over many rows is computed as 8 products, each over a slice of the rows, and the sum of the 8
// products in a fixed order. One product would have too few blocks to fill the device.
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm.cuh"
#include "backends/cuda/products.h"
#include "backends/walk.h"
#include "core/bfloat16.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t slices = 8, sliced_from = 2048;  // slices are used from `sliced_from` rows on

std::int64_t leading_rows(const Array& x) {
  return x.shape().with(-1, 1).numel();
}  // unlike rows_of(), leading_rows() also counts rows without elements
Array scratch(const Array& like) { return empty_like(like); }
const void* address_of(const Array& a) { return a.defined() ? a.address() : nullptr; }
Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }

// Computes y [R, N] = x w^T + b.
void affine(const Array& x, const Array& w, const Array& b, const Out& y) {
  const std::int64_t R = leading_rows(x), N = w.dim(0), K = w.dim(1);
  if (K == 0 && b.defined()) return broadcast(b, y);
  multiply({.dtype = y.dtype(),
            .count = 1,
            .M = R,
            .N = N,
            .K = K,
            .transpose_a = false,
            .transpose_b = true,
            .stride_a = 0,
            .stride_b = 0,
            .stride_y = 0,
            .bias = b.defined(),
            .bf16_operands = x.dtype() == DType::bf16},
           x.address(), w.address(), address_of(b), y.mutable_address());
}

// Computes dw [N, K] = du^T x.
void weight_gradient(const Array& du, const Array& x, const Out& dw) {
  const std::int64_t R = leading_rows(x), N = dw.dim(0), K = dw.dim(1);
  Product product{.dtype = dw.dtype(),
                  .count = 1,
                  .M = N,
                  .N = K,
                  .K = R,
                  .transpose_a = true,
                  .transpose_b = false,
                  .stride_a = 0,
                  .stride_b = 0,
                  .stride_y = 0,
                  .bf16_operands = x.dtype() == DType::bf16};
  if (R < sliced_from) return multiply(product, du.address(), x.address(), nullptr, dw.mutable_address());
  const std::int64_t rows = R / slices, rest = R % slices, done = rows * slices;
  const Out parts(Array(Shape{slices, N, K}, dw.dtype(), Device::cuda));
  product.count = slices, product.K = rows, product.stride_a = rows * N, product.stride_b = rows * K,
  product.stride_y = N * K;
  multiply(product, du.address(), x.address(), nullptr, parts.mutable_address());
  if (rest > 0) {
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
    product.count = 1, product.K = rest, product.stride_a = product.stride_b = product.stride_y = 0,
    product.add_to_y = true;
    multiply(product, static_cast<const char*>(du.address()) + done * N * bytes,
             static_cast<const char*>(x.address()) + done * K * bytes, nullptr, parts.mutable_address());
  }
  reduce(Reduce::sum, parts, Out(dw.reshaped({1, N, K})));
}

// Returns x as an operand of a product. If products run in bf16, x is converted to bf16.
Array operand(const LinearCall& call, const Array& x) {
  if (call.products != Precision::bf16 || x.dtype() == DType::bf16) return x;
  const Out rounded(Array(x.shape(), DType::bf16, Device::cuda));
  cast(x, rounded);
  return rounded;
}

// Returns x, or the norm of x, as an operand. If the call has a norm, also writes mean and rstd.
Array normed(const LinearCall& call, const Array& x, const Out& mean, const Out& rstd) {
  if (!call.gamma.defined()) return operand(call, x);
  const Out h(Array(x.shape(), call.products == Precision::bf16 ? DType::bf16 : x.dtype(), Device::cuda));
  layer_norm_forward(x, call.gamma, call.beta, call.eps, h, mean, rstd);
  return h;
}

// Computes du, the gradient of u = before(x) w^T + b, as an operand of type U. With GELU, du = dy slope. With a
// residual junction, du = dy times the gate and the scale of its sample. Also adds to two column sums. sums[0] gets du,
// for db. sums[1] gets u du', where du' is du without the gate, for the gate's gradient. All pointers but dy may be
// null. S is the type in which dy and slope are stored.
template <class T, class S, class U>
struct OutputGradient {
  const S *dy, *slope;
  const T *gate, *row_scale, *u;
  std::int64_t gates, rows_of_sample, N;
  U* du;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[2]) const {
    const std::int64_t i = row * N + column;
    T g = static_cast<T>(dy[i]);
    if (slope) g *= static_cast<T>(slope[i]);
    if (row_scale) g *= row_scale[row / rows_of_sample];
    if (u) sums[1] += g * u[i];
    if (gate) g *= gate[gates == 1 ? 0 : column];
    if (du) du[i] = static_cast<U>(g);
    sums[0] += g;
  }
  // Returns the bytes that a pass over all rows reads and writes.
  std::int64_t bytes(std::int64_t rows) const {
    const std::size_t of_element = sizeof(S) * (slope ? 2 : 1) + sizeof(T) * (u ? 1 : 0) + sizeof(U) * (du ? 1 : 0);
    return rows * N * static_cast<std::int64_t>(of_element) +
           static_cast<std::int64_t>(sizeof(T)) * ((gate ? gates : 0) + (row_scale ? rows / rows_of_sample : 0));
  }
};

// Computes the gradient of a junction's gate from dw' = du'^T x and db', where du' is the gradient of u without the
// gate. For u = x w^T + b, the sum of du' u over the rows equals the sum of dw' w over the columns plus db' b.
// Therefore neither u nor du' u is stored. There is one warp per row n of w. The warp computes dgate[n] = dw'[n] w[n] +
// db'[n] b[n], dw = gate dw', db = gate db', and gated = gate w. The product du' gated is the gradient of x.
template <class T>
struct Fold {
  const T *w, *b, *gate, *parts;  // parts: [blocks, N], the partial sums of db'
  std::int64_t gates, blocks, N, K;
  T *dw, *db, *dgate, *gated;  // dgate: [N]; db and gated may be null
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

// Computes dx [R, K] = du w, or adds du w to dx.
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
            .add_to_y = add,
            .bf16_operands = du.dtype() == DType::bf16},
           du.address(), w.address(), nullptr, dx.mutable_address());
}

// Computes dx, dgamma and dbeta. The gradient of the norm's output is du w [R, K]. If h is defined, also recomputes the
// norm's output and writes it to h. For `also`, see norm_backward().
template <class T, class U>
void through_norm(const LinearCall& call, const LinearKept& kept, const Array& du, const Array& x, const Array& w,
                  const LinearGradients& g, const Out& h, RowSums<T>& sums, const ColumnSums<T>& also) {
  const Out dh(scratch(x));
  input_gradient(du, w, dh, false);
  norm_backward(NormBackward<T, U>{.dy = elements<T>(dh),
                                   .x = elements<T>(x),
                                   .gamma = elements<T>(call.gamma),
                                   .mean = elements<T>(kept.mean),
                                   .rstd = elements<T>(kept.rstd),
                                   .dx = elements<T>(g.dx),
                                   .added = g.add_to_dx ? elements<T>(g.dx) : nullptr,
                                   .y = elements<U>(h)},
                h.defined() ? elements<T>(call.beta) : nullptr, leading_rows(x), x.dim(-1), g.dgamma, g.dbeta, sums,
                also);
}

// Computes dx of a product without a norm before it. dx may be bf16.
void to_input(const Array& du, const Array& w, const Array& like, const LinearGradients& g) {
  if (g.dx.dtype() == like.dtype()) return input_gradient(du, w, g.dx, g.add_to_dx);
  const Out exact(empty_like(like, g.dx.shape()));
  input_gradient(du, w, exact, false);
  g.add_to_dx ? binary(Binary::add, exact, g.dx, g.dx) : cast(exact, g.dx);
}

// Computes the operand of the forward pass again.
Array operand_again(const LinearCall& call, const LinearKept& kept, const Array& x) {
  const bool norm = call.gamma.defined();
  return normed(call, x, norm ? Out(scratch(kept.mean)) : Out(), norm ? Out(scratch(kept.rstd)) : Out());
}

// Writes du and sums its columns. Returns the partial sums.
template <class T, class S, class U>
const T* make_du(const OutputGradient<T, S, U>& output, std::int64_t rows, RowSums<T>& sums,
                 const std::array<Out, 2>& results) {
  count_bytes(output.bytes(rows));
  return sums.template add<2>(output, rows, output.N, results);
}

// Computes the backward pass of a layer whose gate [N] or [1] gets a gradient, if the operands have the type of the
// weights. See Fold.
template <class T, class S>
void backward_of_gate(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x,
                      const Array& weight, const Array& b, const LinearGradients& g, OutputGradient<T, S, T> output) {
  const std::int64_t R = leading_rows(x), N = weight.dim(0), K = weight.dim(1);
  const bool wants_x = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined(), scaled = output.row_scale != nullptr;
  RowSums<T> sums;
  output.gate = nullptr;
  const Array du = scaled ? Array(dy.shape(), dtype_of<T>, Device::cuda) : dy;
  if (scaled) output.du = pointer<T>(Out(du));
  const std::array<Out, 2> nowhere{};  // empty: fold_kernel reads the partial sums of db' itself
  const T* const parts = scaled || b.defined() ? make_du(output, R, sums, nowhere) : nullptr;
  const Out dw = g.dw.defined() ? g.dw : Out(scratch(weight)),
            of_rows = g.dgate.numel() == N ? g.dgate : Out(empty_like(weight, {N}));
  weight_gradient(du, operand_again(call, kept, x), dw);
  if (parts)
    count_bytes(RowSums<T>::blocks_of(R) * N * static_cast<std::int64_t>(sizeof(T)));  // fold_kernel reads them
  const Out gated_weight = wants_x ? Out(scratch(weight)) : Out();
  launch_rows(N, fold_kernel<T>,
              Fold<T>{.w = elements<T>(weight),
                      .b = elements<T>(b),
                      .gate = elements<T>(call.gate),
                      .parts = parts,
                      .gates = call.gate.numel(),
                      .blocks = RowSums<T>::blocks_of(R),
                      .N = N,
                      .K = K,
                      .dw = in_place<T>(dw),
                      .db = elements<T>(g.db),
                      .dgate = elements<T>(of_rows),
                      .gated = elements<T>(gated_weight)});
  if (g.dgate.numel() != N) launch_add_all<T>(elements<T>(of_rows), N, 1.0, elements<T>(g.dgate));
  if (wants_x && call.gamma.defined())
    through_norm<T, T>(call, kept, du, x, gated_weight, g, Out(), sums, {});
  else if (wants_x)
    to_input(du, gated_weight, weight, g);
  sums.finish();
}

// Computes the backward pass. T is the type of the weights and sums. S is the type in which dy and the slope are
// stored. U is the type of the products' operands.
template <class T, class S, class U>
void backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& weight,
              const Array& b, const LinearGradients& g) {
  const std::int64_t R = leading_rows(x), N = weight.dim(0);
  const bool norm = call.gamma.defined(), junction = call.after == LinearCall::After::residual,
             gelu = call.after == LinearCall::After::gelu;
  const bool gated = junction && call.gate.defined(), scaled = junction && call.row_scale.defined(),
             wants_gate = gated && g.dgate.defined();
  const bool wants_x = g.dx.defined() || g.dgamma.defined() || g.dbeta.defined();
  OutputGradient<T, S, U> output{
      .dy = pointer<S>(dy),
      .slope = gelu ? pointer<S>(kept.slope) : nullptr,
      .gate = gated ? pointer<T>(call.gate) : nullptr,
      .row_scale = scaled ? pointer<T>(call.row_scale) : nullptr,
      .u = nullptr,
      .gates = gated ? call.gate.numel() : 1,
      .rows_of_sample = scaled ? std::max<std::int64_t>(R / std::max<std::int64_t>(call.row_scale.numel(), 1), 1) : 1,
      .N = N,
      .du = nullptr};
  if constexpr (std::is_same_v<T, U>)
    if (wants_gate) return backward_of_gate<T, S>(call, kept, dy, x, weight, b, g, output);

  RowSums<T> sums;
  const Array w = wants_x || wants_gate ? operand(call, weight) : Array();
  Array h = wants_gate || (g.dw.defined() && !(norm && wants_x)) ? operand_again(call, kept, x) : Array();
  Out u;
  if (wants_gate) {
    u = Out(Array(dy.shape(), dtype_of<T>, Device::cuda));
    affine(h, w, b, u);
    output.u = pointer<T>(u);
  }
  Array du = dy;
  if (output.slope || output.gate || output.row_scale || !std::is_same_v<S, U>) {
    du = Array(dy.shape(), dtype_of<U>, Device::cuda);
    output.du = pointer<U>(Out(du));
    make_du(output, R, sums, {g.db, wants_gate ? g.dgate : Out()});
  }
  ColumnSums<T> also;
  if (!output.du && g.db.defined()) {  // in this case, the columns of dy are not summed yet
    if constexpr (std::is_same_v<S, T>)
      if (norm && wants_x)
        also = {.x = elements<T>(dy),
                .rows = R,
                .columns = N,
                .rows_of_block = partial_rows_of(R),
                .partial = sums.parts(RowSums<T>::blocks_of(R), N, std::array<Out, 1>{g.db})};
    if (!also.x) make_du(output, R, sums, {g.db, Out()});
  }
  if (norm && wants_x) {
    if (g.dw.defined() && !h.defined()) h = Array(x.shape(), dtype_of<U>, Device::cuda);
    through_norm<T, U>(call, kept, du, x, w, g, g.dw.defined() ? Out(h) : Out(), sums, also);
  } else if (wants_x) {
    to_input(du, w, weight, g);
  }
  if (g.dw.defined()) weight_gradient(du, h, g.dw);
  sums.finish();
}

}  // namespace

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Out& y) {
  if (y.numel() == 0) return;
  if (a.numel() == 0) return fill(0, y);  // y has elements, so the inner extent is 0
  const std::int64_t M = y.dim(-2), N = y.dim(-1), K = a.dim(transpose_a ? -2 : -1);
  const Shape matrices = leading(y.shape());
  const Walk<2> walk(
      matrices, {broadcast_strides(leading(a.shape()), matrices), broadcast_strides(leading(b.shape()), matrices)});
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
             static_cast<const char*>(a.address()) + at[0] * M * K * bytes,
             static_cast<const char*>(b.address()) + at[1] * K * N * bytes, nullptr,
             static_cast<char*>(y.mutable_address()) + matrix * M * N * bytes);
  });
}

void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const LinearKeptOut& kept,
                    const Out& y) {
  const Array h = normed(call, x, kept.mean, kept.rstd), weight = operand(call, w);
  const auto product = [&](const Array& bias) {
    const Out u(Array(y.shape(), w.dtype(), Device::cuda));
    affine(h, weight, bias, u);
    return u;
  };
  switch (call.after) {
    case LinearCall::After::nothing:
      return y.dtype() == w.dtype() ? affine(h, weight, b, y) : cast(product(b), y);
    case LinearCall::After::gelu:
      return gelu_forward(call.gelu, product(Array()), b, y, kept.slope);
    case LinearCall::After::residual:
      return gated_residual_forward(call.skip, product(b), call.gate, call.row_scale, y);
  }
}

void linear_backward(const LinearCall& call, const LinearKept& kept, const Array& dy, const Array& x, const Array& w,
                     const Array& b, const LinearGradients& g) {
  if (call.products == Precision::bf16)
    dy.dtype() == DType::bf16 ? backward<float, bfloat16, bfloat16>(call, kept, dy, x, w, b, g)
                              : backward<float, float, bfloat16>(call, kept, dy, x, w, b, g);
  else
    dispatch_float(w.dtype(), "linear", [&]<class T>() { backward<T, T, T>(call, kept, dy, x, w, b, g); });
}

}  // namespace plumb::cuda
