// Layer norm and RMS norm over the last axis, with one warp per row. The warp reads its row two or three times (from
// the cache after the first time), because the variance takes a second pass. The backward pass is one kernel, which
// computes dx and partial sums of the gradients of gamma and beta. If the norm's output is wanted again, the same
// kernel recomputes the output. Traffic: the forward pass reads x and writes y. The backward pass reads dy and x and
// writes dx.
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm.cuh"
#include "core/bfloat16.h"

namespace plumb::cuda {
namespace {

// Computes layer norm if beta and mean are given, or RMS norm if beta and mean are null. S is T or bf16.
template <class T, class S>
__global__ void norm_forward_kernel(const T* x, const T* gamma, const T* beta, T eps, S* y, T* mean, T* rstd,
                                    std::int64_t rows, std::int64_t D) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * D, y += row * D;
  T m = 0, squares = 0;
  if (mean) {
    for (std::int64_t i = lane(); i < D; i += 32) m += x[i];
    m = warp_sum(m) / static_cast<T>(D);
  }
  for (std::int64_t i = lane(); i < D; i += 32) squares += (x[i] - m) * (x[i] - m);
  const T s = 1 / std::sqrt(warp_sum(squares) / static_cast<T>(D) + eps);
  for (std::int64_t i = lane(); i < D; i += 32)
    y[i] = static_cast<S>(gamma[i] * ((x[i] - m) * s) + (beta ? beta[i] : T{0}));
  if (lane() == 0) {
    rstd[row] = s;
    if (mean) mean[row] = m;
  }
}

// Computes the backward pass with one warp per row at a time. The warps of a block take the rows of the block in turn.
// Each warp sums its share of dgamma and dbeta in shared memory. Then the block adds the shares in the order of the
// warps. If `also` has columns, the blocks from number `blocks` on sum the columns of `also`.
template <class T, class S>
__global__ void norm_backward_kernel(NormBackward<T, S> n, const T* beta, std::int64_t rows, std::int64_t D,
                                     std::int64_t blocks, T* partial, ColumnSums<T> also) {
  if (blockIdx.x >= blocks) {
    const std::int64_t number = blockIdx.x - blocks, wide = (also.columns + blockDim.x - 1) / blockDim.x;
    const std::int64_t column = number % wide * blockDim.x + threadIdx.x, first = number / wide * also.rows_of_block;
    if (column >= also.columns) return;
    T sum = 0;
    for (std::int64_t row = first; row < min(also.rows, first + also.rows_of_block); ++row)
      sum += also.x[row * also.columns + column];
    also.partial[number / wide * also.columns + column] = sum;
    return;
  }
  const std::int64_t rows_of_block = (rows + blocks - 1) / blocks, first = std::int64_t{blockIdx.x} * rows_of_block;
  const int warp = static_cast<int>(threadIdx.x / 32), warps = static_cast<int>(blockDim.x / 32);
  T* const mine = partial ? shared<T>() + warp * 2 * D : nullptr;
  if (partial)
    for (std::int64_t c = lane(); c < D; c += 32) mine[c] = mine[D + c] = 0;
  for (std::int64_t row = first + warp; row < min(rows, first + rows_of_block); row += warps) {
    const T *const dy = n.dy + row * D, *const x = n.x + row * D;
    const T m = n.mean ? n.mean[row] : T{0}, s = n.rstd[row];
    T mean_u = 0, mean_uh = 0;
    for (std::int64_t i = lane(); i < D; i += 32) {
      const T u = n.gamma[i] * dy[i];
      mean_u += u, mean_uh += u * ((x[i] - m) * s);
    }
    mean_u = n.mean ? warp_sum(mean_u) / static_cast<T>(D) : T{0};
    mean_uh = warp_sum(mean_uh) / static_cast<T>(D);
    for (std::int64_t i = lane(); i < D; i += 32) {
      const T g = dy[i], h = (x[i] - m) * s;
      if (n.dx) {
        const T dx = s * (n.gamma[i] * g - mean_u - h * mean_uh);
        n.dx[row * D + i] = n.added ? n.added[row * D + i] + dx : dx;
      }
      if (n.y) n.y[row * D + i] = static_cast<S>(n.gamma[i] * h + beta[i]);
      if (partial) mine[i] += g * h, mine[D + i] += g;
    }
  }
  if (!partial) return;
  __syncthreads();
  for (std::int64_t c = threadIdx.x; c < 2 * D; c += blockDim.x) {
    T sum = 0;
    for (int w = 0; w < warps; ++w) sum += shared<T>()[w * 2 * D + c];
    partial[(c / D * blocks + blockIdx.x) * D + c % D] = sum;
  }
}

// Computes dgamma and dbeta for rows that are too wide for shared memory.
template <class T>
struct NormColumns {
  const T *dy, *x, *mean, *rstd;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[2]) const {
    const T g = dy[row * D + column];
    sums[0] += g * ((x[row * D + column] - (mean ? mean[row] : T{0})) * rstd[row]);
    sums[1] += g;
  }
};

// Computes the derivatives of layer_norm_backward's dx (formulas: core/kernels.def), with one warp per row. `means`
// [rows, 2] receives mean(g) and mean(g h), which the sums over rows need.
template <class T>
__global__ void layer_norm_second_kernel(const T* g, const T* dy, const T* x, const T* gamma, const T* mean,
                                         const T* rstd, T* ddy, T* dx, T* means, std::int64_t rows, std::int64_t D) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  g += row * D, dy += row * D, x += row * D, ddy += row * D, dx += row * D;
  const T m = mean[row], s = rstd[row];
  T g1 = 0, u1 = 0, gh = 0, uh = 0, gu = 0;
  for (std::int64_t i = lane(); i < D; i += 32) {
    const T h = (x[i] - m) * s, u = gamma[i] * dy[i];
    g1 += g[i], u1 += u, gh += g[i] * h, uh += u * h, gu += g[i] * u;
  }
  const T n = static_cast<T>(D);
  g1 = warp_sum(g1) / n, u1 = warp_sum(u1) / n, gh = warp_sum(gh) / n, uh = warp_sum(uh) / n, gu = warp_sum(gu) / n;
  const T mean_t = g1 * uh + u1 * gh, along_h = gu - g1 * u1 - 3 * gh * uh;
  for (std::int64_t i = lane(); i < D; i += 32) {
    const T h = (x[i] - m) * s, u = gamma[i] * dy[i];
    ddy[i] = gamma[i] * (s * (g[i] - g1 - h * gh));
    dx[i] = -s * s * (g[i] * uh + u * gh - mean_t + h * along_h);
  }
  if (lane() == 0) means[2 * row] = g1, means[2 * row + 1] = gh;
}

template <class T>
struct SecondColumns {
  const T *g, *dy, *x, *mean, *rstd, *means;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[1]) const {
    const std::int64_t at = row * D + column;
    const T h = (x[at] - mean[row]) * rstd[row];
    sums[0] += dy[at] * (rstd[row] * (g[at] - means[2 * row] - h * means[2 * row + 1]));
  }
};

template <class T>
NormBackward<T, T> backward_of(const Array& dy, const Array& x, const Array& gamma, const Array& mean,
                               const Array& rstd, const Out& dx) {
  return {elements<T>(dy), elements<T>(x), elements<T>(gamma), elements<T>(mean), elements<T>(rstd), elements<T>(dx),
          nullptr,         nullptr};
}

}  // namespace

template <class T, class S>
void norm_backward(const NormBackward<T, S>& n, const T* beta, std::int64_t rows, std::int64_t D, const Out& dgamma,
                   const Out& dbeta, RowSums<T>& sums, ColumnSums<T> also) {
  constexpr std::int64_t room = 48 << 10;  // bytes of shared memory that a block gets without opt-in
  const std::int64_t of_warp = 2 * D * static_cast<std::int64_t>(sizeof(T));
  const bool wants_sums = dgamma.defined() || dbeta.defined(), fits = of_warp <= room;
  const std::int64_t warps =
                         fits && wants_sums ? std::min<std::int64_t>(8, room / std::max<std::int64_t>(of_warp, 1)) : 8,
                     blocks = RowSums<T>::blocks_of(rows);
  T* const partial = wants_sums && fits ? sums.parts(blocks, D, std::array<Out, 2>{dgamma, dbeta}) : nullptr;
  const std::int64_t others =
      also.columns > 0 ? (also.columns + 32 * warps - 1) / (32 * warps) * RowSums<T>::blocks_of(also.rows) : 0;
  if (D > 0 || others > 0)
    launch(norm_backward_kernel<T, S>, dim3{static_cast<unsigned>(blocks + others), 1, 1},
           dim3{static_cast<unsigned>(32 * warps), 1, 1}, static_cast<std::size_t>(partial ? warps * of_warp : 0), n,
           beta, rows, D, blocks, partial, also);
  if (!wants_sums || fits) return;
  count_bytes(2 * rows * D * static_cast<std::int64_t>(sizeof(T)));  // the kernel below reads dy and x again
  sums.template add<2>(NormColumns<T>{n.dy, n.x, n.mean, n.rstd, D}, rows, D, {dgamma, dbeta});
}
template void norm_backward(const NormBackward<float, float>&, const float*, std::int64_t, std::int64_t, const Out&,
                            const Out&, RowSums<float>&, ColumnSums<float>);
template void norm_backward(const NormBackward<float, bfloat16>&, const float*, std::int64_t, std::int64_t, const Out&,
                            const Out&, RowSums<float>&, ColumnSums<float>);
template void norm_backward(const NormBackward<double, double>&, const double*, std::int64_t, std::int64_t, const Out&,
                            const Out&, RowSums<double>&, ColumnSums<double>);

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y,
                        const Out& mean, const Out& rstd) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    const auto into = [&]<class S>() {
      launch_rows(rows_of(x), norm_forward_kernel<T, S>, elements<T>(x), elements<T>(gamma), elements<T>(beta),
                  static_cast<T>(eps), elements<S>(y), elements<T>(mean), elements<T>(rstd), rows_of(x), x.dim(-1));
    };
    y.dtype() == DType::bf16 ? into.template operator()<bfloat16>() : into.template operator()<T>();
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd,
                         const Out& dx, const Out& dgamma, const Out& dbeta) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    RowSums<T> sums;
    norm_backward(backward_of<T>(dy, x, gamma, mean, rstd, dx), static_cast<const T*>(nullptr), rows_of(x), x.dim(-1),
                  dgamma, dbeta, sums, {});
    sums.finish();
  });
}

void layer_norm_second(const Array& g, const Array& dy, const Array& x, const Array& gamma, const Array& mean,
                       const Array& rstd, const Out& ddy, const Out& dx, const Out& dgamma) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    const std::int64_t rows = rows_of(x), D = x.dim(-1);
    const Out means(Array(Shape{std::max<std::int64_t>(rows, 1), 2}, x.dtype(), Device::cuda));
    launch_rows(rows, layer_norm_second_kernel<T>, elements<T>(g), elements<T>(dy), elements<T>(x), elements<T>(gamma),
                elements<T>(mean), elements<T>(rstd), elements<T>(ddy), elements<T>(dx), elements<T>(means), rows, D);
    sum_columns<1, T>(SecondColumns<T>{elements<T>(g), elements<T>(dy), elements<T>(x), pointer<T>(mean),
                                       pointer<T>(rstd), elements<T>(means), D},
                      rows, D, std::array<Out, 1>{dgamma});
  });
}

void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Out& y, const Out& rstd) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    launch_rows(rows_of(x), norm_forward_kernel<T, T>, elements<T>(x), elements<T>(gamma),
                static_cast<const T*>(nullptr), static_cast<T>(eps), elements<T>(y), static_cast<T*>(nullptr),
                elements<T>(rstd), rows_of(x), x.dim(-1));
  });
}

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Out& dx,
                       const Out& dgamma) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    RowSums<T> sums;
    norm_backward(backward_of<T>(dy, x, gamma, Array(), rstd, dx), static_cast<const T*>(nullptr), rows_of(x),
                  x.dim(-1), dgamma, Out(), sums, {});
    sums.finish();
  });
}

}  // namespace plumb::cuda
