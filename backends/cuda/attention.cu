// Attention with DropKey, keep masks and attention dropout (formulas: backends/reference/attention.cpp). One warp
// computes one query. The warp keeps the query's row of probabilities in shared memory. The masks are drawn in shared
// memory as well, and are stored nowhere else.
//
// Backward: the warps recompute the rows of probabilities. From each row, a warp computes the row of dS and the row of
// probabilities after dropout. Then one thread computes one element of dk and one element of dv, as sums over the
// queries, in order. If both [N, M] arrays of a head fit into shared memory (about 70 tokens in f32), one block does
// all of this for one head. Otherwise there are two kernels, and the arrays are in global scratch memory [B, H, N, M].
//
// Traffic: the forward pass reads q, k and v and writes out. The backward pass reads dout, q, k and v, writes dq, dk
// and dv, and writes and reads the scratch memory. Keys and values are read again for each query, from the cache.
#include "backends/cuda/attention_masks.cuh"
#include "backends/cuda/kernels.h"
#include "backends/cuda/through_host.h"
#include "core/bfloat16.h"

namespace plumb::cuda {
namespace {

template <class T>
struct View {
  T* data;
  std::int64_t batch, head, token;
  __device__ __forceinline__ T* at(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return data + b * batch + h * head + t * token;
  }
};

struct RowState {
  bool differentiable;  // false if the probabilities of this row are constant
  double top, sum;      // top: largest q.k; sum: sum of the exponentials relative to the largest score
};

// Computes the probabilities of query n of head h of sample b and writes them to `row`. All lanes of a warp must call
// attend().
template <class T, class S>
__device__ RowState attend(const Call<T>& call, const S* q, const View<const S>& k, std::int64_t b, std::int64_t h,
                           std::int64_t n, const RowMemory<T>& row) {
  if (!draw_masks(call, b, h, n, row)) return {false, 0, 1};
  for (std::int64_t j = lane(); j < call.keys; j += 32) {
    if (!row.kept[j]) continue;
    const S* const key = k.at(b, h, j);
    T dot = 0;
    for (std::int64_t i = 0; i < call.head_dim; ++i) dot += static_cast<T>(q[i]) * static_cast<T>(key[i]);
    row.p[j] = call.scale * dot;
  }
  const Softmax<T> s = softmax_over_kept(call.keys, row);
  return {true, call.scale > 0 ? static_cast<double>(s.top / call.scale) : 0, static_cast<double>(s.sum)};
}

// Computes the output of one query. There is one warp for each (sample, head, query), in this order.
template <class T, class S>
__global__ void forward_kernel(Call<T> call, View<const S> q, View<const S> k, View<const S> v, View<S> out, T* sums) {
  const Query query = warp_query(call);
  if (!exists(call, query)) return;
  const auto [b, h, n, row_number] = query;
  const RowMemory<T> row = row_memory<T>(call.keys);
  const RowState state = attend(call, q.at(b, h, n), k, b, h, n, row);
  if (lane() == 0)
    sums[2 * row_number] = static_cast<T>(state.top), sums[2 * row_number + 1] = static_cast<T>(state.sum);
  S* const result = out.at(b, h, n);
  for (std::int64_t i = lane(); i < call.head_dim; i += 32) {
    T sum = 0;
    for (std::int64_t j = 0; j < call.keys; ++j)
      if (row.on[j] && row.p[j] != 0) sum += row.p[j] * static_cast<T>(v.at(b, h, j)[i]);
    result[i] = static_cast<S>(call.survivors * sum);
  }
}

// The operands and results of the backward pass.
template <class S>
struct Backward {
  View<const S> dout, q, k, v;
  View<S> dq, dk, dv;
};

// Computes dq of query n. Also computes two rows of the query that dk and dv need: `ds` is the row of dS, and `after`
// is the row of probabilities after dropout. All lanes of a warp must call backward_row().
template <class T, class S>
__device__ void backward_row(const Call<T>& call, const Backward<S>& to, std::int64_t b, std::int64_t h, std::int64_t n,
                             const RowMemory<T>& row, T* ds, T* after) {
  const RowState state = attend(call, to.q.at(b, h, n), to.k, b, h, n, row);
  const S* const gradient = to.dout.at(b, h, n);
  T dot = 0;
  for (std::int64_t j = lane(); j < call.keys; j += 32) {
    T dp = 0;
    if (row.on[j]) {
      const S* const value = to.v.at(b, h, j);
      for (std::int64_t i = 0; i < call.head_dim; ++i) dp += static_cast<T>(gradient[i]) * static_cast<T>(value[i]);
    }
    dp *= call.survivors;
    after[j] = row.on[j] ? call.survivors * row.p[j] : T{0};
    ds[j] = dp;
    dot += row.p[j] * dp;
  }
  dot = warp_sum(dot);
  for (std::int64_t j = lane(); j < call.keys; j += 32) {
    const T slope = state.differentiable && row.p[j] != 0 ? call.scale * row.p[j] * (ds[j] - dot) : T{0};
    ds[j] = slope;
    row.p[j] = slope;  // the other lanes read row.p[j] below
  }
  __syncwarp();
  S* const result = to.dq.at(b, h, n);
  for (std::int64_t i = lane(); i < call.head_dim; i += 32) {
    T sum = 0;
    for (std::int64_t j = 0; j < call.keys; ++j) sum += row.p[j] * static_cast<T>(to.k.at(b, h, j)[i]);
    result[i] = static_cast<S>(sum);
  }
}

// Computes element i of dk and of dv for key j of a head. `ds` holds dS and `after` holds the probabilities after
// dropout. Each is the [N, M] array of the head.
template <class T, class S>
__device__ __forceinline__ void over_queries(const Call<T>& call, const Backward<S>& to, std::int64_t b, std::int64_t h,
                                             std::int64_t j, std::int64_t i, const T* ds, const T* after) {
  T dk = 0, dv = 0;
  for (std::int64_t n = 0; n < call.queries; ++n) {
    dk += ds[n * call.keys + j] * static_cast<T>(to.q.at(b, h, n)[i]);
    dv += after[n * call.keys + j] * static_cast<T>(to.dout.at(b, h, n)[i]);
  }
  to.dk.at(b, h, j)[i] = static_cast<S>(dk);
  to.dv.at(b, h, j)[i] = static_cast<S>(dv);
}

// The backward pass in one kernel, with one block per head. Shared memory holds dS and the probabilities of the head,
// then one row for each warp.
template <class T, class S>
__global__ void __launch_bounds__(256, 3) head_backward_kernel(Call<T> call, Backward<S> to) {
  const std::int64_t h = blockIdx.x % call.heads, b = blockIdx.x / call.heads, all = call.queries * call.keys;
  T *const ds = shared<T>(), *const after = ds + all;
  const std::int64_t before = head_bytes<T>(call.queries, call.keys);
  for (std::int64_t n = threadIdx.x / 32; n < call.queries; n += blockDim.x / 32) {
    backward_row(call, to, b, h, n, row_memory<T>(call.keys, before), ds + n * call.keys, after + n * call.keys);
    __syncwarp();  // the next iteration overwrites the row
  }
  __syncthreads();
  for (std::int64_t index = threadIdx.x; index < call.keys * call.head_dim; index += blockDim.x)
    over_queries(call, to, b, h, index / call.head_dim, index % call.head_dim, ds, after);
}

// The backward pass in two kernels. dS (`ds`) and the probabilities (`after`) are in global memory, [B, H, N, M].
template <class T, class S>
__global__ void rows_backward_kernel(Call<T> call, Backward<S> to, T* ds, T* after) {
  const Query query = warp_query(call);
  if (!exists(call, query)) return;
  const auto [b, h, n, row_number] = query;
  backward_row(call, to, b, h, n, row_memory<T>(call.keys), ds + row_number * call.keys,
               after + row_number * call.keys);
}
template <class T, class S>
__global__ void keys_backward_kernel(Call<T> call, Backward<S> to, const T* ds, const T* after) {
  const std::int64_t index = thread_number(), E = call.head_dim;
  if (index >= call.batch * call.heads * call.keys * E) return;
  const std::int64_t head = index / E / call.keys, of_head = head * call.queries * call.keys;
  over_queries(call, to, head / call.heads, head % call.heads, index / E % call.keys, index % E, ds + of_head,
               after + of_head);
}

template <class T, class A>
auto view(const AttentionCall& c, const HeadsOf<A>& h, std::int64_t tokens) {
  count_bytes(c.batch * c.heads * tokens * c.head_dim * static_cast<std::int64_t>(sizeof(T)));
  auto* const first = pointer<T>(h.array) + h.offset;
  return View<std::remove_pointer_t<decltype(pointer<T>(h.array))>>{first, h.batch, h.head, h.token};
}

// Returns whether the kernels can run. All arrays must have the same dtype, and a row must fit into shared memory.
// Other calls run on the CPU (through_host).
bool fits(const AttentionCall& c, std::initializer_list<const Array*> arrays) {
  const DType dtype = (*arrays.begin())->dtype();
  return row_fits(c, dtype) && std::ranges::all_of(arrays, [&](const Array* a) { return a->dtype() == dtype; });
}

// Calls f<T, S>. T is the type of the arithmetic. S is the type in which q, k, v, out and their gradients are stored.
template <class F>
void dispatch_attention(DType dtype, F&& f) {
  if (dtype == DType::bf16)
    f.template operator()<float, bfloat16>();
  else
    dispatch_float(dtype, "attention", [&]<class T>() { f.template operator()<T, T>(); });
}

}  // namespace

void attention_forward(const AttentionCall& c, const Heads& q, const Heads& k, const Heads& v, const HeadsOut& out,
                       const Out& sums) {
  if (!fits(c, {&q.array, &k.array, &v.array, &out.array}))
    return through_host<&Kernels::attention_forward>(c, q, k, v, out, sums);
  dispatch_attention(q.array.dtype(), [&]<class T, class S>() {
    launch_queries<T>(c, forward_kernel<T, S>, call_of<T>(c), view<S>(c, q, c.queries), view<S>(c, k, c.keys),
                      view<S>(c, v, c.keys), view<S>(c, out, c.queries), elements<T>(sums));
  });
}

void attention_backward(const AttentionCall& c, const Heads& dout, const Heads& q, const Heads& k, const Heads& v,
                        const Array& sums, const HeadsOut& dq, const HeadsOut& dk, const HeadsOut& dv) {
  if (!fits(c, {&q.array, &k.array, &v.array, &dout.array, &dq.array, &dk.array, &dv.array}))
    return through_host<&Kernels::attention_backward>(c, dout, q, k, v, sums, dq, dk, dv);
  dispatch_attention(q.array.dtype(), [&]<class T, class S>() {
    const std::int64_t N = c.queries, M = c.keys;
    const Backward<S> to{view<S>(c, dout, N), view<S>(c, q, N),  view<S>(c, k, M), view<S>(c, v, M),
                         view<S>(c, dq, N),   view<S>(c, dk, M), view<S>(c, dv, M)};
    const std::int64_t of_head = head_bytes<T>(c.queries, c.keys),
                       warps = std::min<std::int64_t>(8, (attention_room - of_head) / row_bytes<T>(c.keys));
    if (warps > 0 && c.batch * c.heads > 0) {
      count_bytes(c.keep.defined() ? c.keep.numel() : 0);
      return launch(head_backward_kernel<T, S>, dim3{static_cast<unsigned>(c.batch * c.heads), 1, 1},
                    dim3{static_cast<unsigned>(32 * warps), 1, 1},
                    static_cast<std::size_t>(of_head + warps * row_bytes<T>(c.keys)), call_of<T>(c), to);
    }
    const Array all(Shape{c.batch, c.heads, c.queries, c.keys}, dtype_of<T>, Device::cuda);
    const Out ds(all), after(empty_like(all));
    launch_queries<T>(c, rows_backward_kernel<T, S>, call_of<T>(c), to, elements<T>(ds), elements<T>(after));
    // This line counts the bytes of dout and q again, because keys_backward_kernel reads dout and q once more.
    view<S>(c, dout, N), view<S>(c, q, N);
    launch_for(c.batch * c.heads * c.keys * c.head_dim, keys_backward_kernel<T, S>, call_of<T>(c), to, elements<T>(ds),
               elements<T>(after));
  });
}

}  // namespace plumb::cuda
