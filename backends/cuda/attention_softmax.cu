// Softmax and dropout of scores [B, H, N, M] under the masks of a call. There is one warp per query, with the query's
// row in shared memory. The masks are drawn in shared memory and stored nowhere else. Traffic: the forward pass and
// dropout read and write the array once. The backward pass reads two arrays and writes one.
#include "backends/cuda/attention_masks.cuh"
#include "backends/cuda/kernels.h"
#include "backends/cuda/through_host.h"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void softmax_kernel(Call<T> call, const T* x, T* y) {
  const Query query = warp_query(call);
  if (!exists(call, query)) return;
  const RowMemory<T> row = row_memory<T>(call.keys);
  const std::int64_t first = query.row * call.keys;
  if (draw_masks(call, query.b, query.h, query.n, row)) {
    for (std::int64_t j = lane(); j < call.keys; j += 32) row.p[j] = x[first + j];
    softmax_over_kept(call.keys, row);
  }
  for (std::int64_t j = lane(); j < call.keys; j += 32) y[first + j] = row.p[j];
}

// Masked keys have probability 0 in y, so the masks need not be drawn again. The exception is EmptyRow::paper, which
// gives empty rows a constant probability other than 0.
template <class T>
__global__ void softmax_backward_kernel(Call<T> call, const T* dy, const T* y, T* dx) {
  const Query query = warp_query(call);
  if (!exists(call, query)) return;
  const bool attends =
      call.empty != EmptyRow::paper || draw_masks(call, query.b, query.h, query.n, row_memory<T>(call.keys));
  const std::int64_t first = query.row * call.keys;
  T dot = 0;
  for (std::int64_t j = first + lane(); j < first + call.keys; j += 32) dot += y[j] * dy[j];
  dot = warp_sum(dot);
  for (std::int64_t j = first + lane(); j < first + call.keys; j += 32) dx[j] = attends ? y[j] * (dy[j] - dot) : T{0};
}

template <class T>
__global__ void dropout_kernel(Call<T> call, const T* x, T* y) {
  const Query query = warp_query(call);
  if (!exists(call, query)) return;
  const RowMemory<T> row = row_memory<T>(call.keys);
  draw_masks(call, query.b, query.h, query.n, row);
  const std::int64_t first = query.row * call.keys;
  for (std::int64_t j = lane(); j < call.keys; j += 32) y[first + j] = row.on[j] ? call.survivors * x[first + j] : T{0};
}

}  // namespace

void attention_softmax_forward(const AttentionCall& c, const Array& x, const Out& y) {
  if (!row_fits(c, x.dtype())) return through_host<&Kernels::attention_softmax_forward>(c, x, y);
  dispatch_float(x.dtype(), "attention_softmax", [&]<class T>() {
    launch_queries<T>(c, softmax_kernel<T>, call_of<T>(c), elements<T>(x), elements<T>(y));
  });
}

void attention_softmax_backward(const AttentionCall& c, const Array& dy, const Array& y, const Out& dx) {
  if (!row_fits(c, y.dtype())) return through_host<&Kernels::attention_softmax_backward>(c, dy, y, dx);
  dispatch_float(y.dtype(), "attention_softmax", [&]<class T>() {
    launch_queries<T>(c, softmax_backward_kernel<T>, call_of<T>(c), elements<T>(dy), elements<T>(y), elements<T>(dx));
  });
}

void attention_dropout(const AttentionCall& c, const Array& x, const Out& y) {
  if (!row_fits(c, x.dtype())) return through_host<&Kernels::attention_dropout>(c, x, y);
  dispatch_float(x.dtype(), "attention_dropout", [&]<class T>() {
    launch_queries<T>(c, dropout_kernel<T>, call_of<T>(c), elements<T>(x), elements<T>(y));
  });
}

}  // namespace plumb::cuda
