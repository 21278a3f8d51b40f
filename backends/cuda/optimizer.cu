// AdamW over all parameters in one launch: blocks of 1024 elements, found in a table of tensors that goes up once a call. SGD, Adagrad: an element to
// a thread. The sum of squares: a block to 4096 elements, in f64, then one block adds these sums in their order. (Formulas:
// backends/reference/optimizer.cpp.) Bytes: AdamW reads gradient, parameter and both moments and writes the latter three; each once.
#include <cstring>

#include "backends/cuda/kernels.h"
#include "backends/cuda/pack.cuh"
#include "backends/cuda/rows.cuh"
#include "core/memory.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t adamw_block = 1024, squares_block = 4096;  // elements

// A table of the host on the device, for the kernels launched before it goes.
template <class Row>
class Table {
 public:
  explicit Table(const std::vector<Row>& rows) : bytes_(Shape{static_cast<std::int64_t>(rows.size() * sizeof(Row))}, DType::u8, Device::cuda) {
    memory_of(Device::cuda).upload(rows.data(), Out(bytes_).mutable_address(), rows.size() * sizeof(Row));
  }
  const Row* data() const { return static_cast<const Row*>(bytes_.address()); }

 private:
  Array bytes_;
};

// The row whose blocks contain `block`: rows are in the order of their first_block, which the first has 0.
template <class Row>
__device__ __forceinline__ const Row& row_of_block(const Row* rows, int count, std::int64_t block) {
  int low = 0, high = count;  // low's first block is not after `block`, high's is
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (rows[middle].first_block <= block ? low : high) = middle;
  }
  return rows[low];
}

template <class T>
struct AdamWRow {
  std::int64_t first_block, n;
  const T* gradient;
  T *parameter, *moment1, *moment2;
  T beta1, rest1, beta2, rest2;                         // rest: 1 - beta, by the host in f64
  T decay, rate, eps, correction1, correction2, scale;  // decay: lr wd
};

template <class T>
__global__ void adamw_kernel(const AdamWRow<T>* rows, int count) {
  const AdamWRow<T> r = row_of_block(rows, count, std::int64_t{blockIdx.x});
  const std::int64_t first = (std::int64_t{blockIdx.x} - r.first_block) * adamw_block;
  for (std::int64_t i = first + threadIdx.x; i < min(r.n, first + adamw_block); i += blockDim.x) {
    const T g = r.scale * r.gradient[i];
    const T m = r.beta1 * r.moment1[i] + r.rest1 * g, v = r.beta2 * r.moment2[i] + r.rest2 * g * g;
    r.moment1[i] = m, r.moment2[i] = v;
    const T p = r.parameter[i];
    r.parameter[i] = p - r.decay * p - r.rate * (m / r.correction1) / (std::sqrt(v / r.correction2) + r.eps);
  }
}

template <class T>
__global__ void sgd_kernel(const T* gradient, T* parameter, T* velocity, T rate, T momentum, T decay, T scale, bool nesterov, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  T g = scale * gradient[i] + decay * parameter[i];
  if (velocity) {
    const T v = momentum * velocity[i] + g;
    velocity[i] = v;
    g = nesterov ? g + momentum * v : v;
  }
  parameter[i] -= rate * g;
}

template <class T>
__global__ void adagrad_kernel(const T* gradient, T* parameter, T* squares, T rate, T eps, T decay, T scale, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const T g = scale * gradient[i] + decay * parameter[i], sum = squares[i] + g * g;
  squares[i] = sum;
  parameter[i] -= rate * g / (std::sqrt(sum) + eps);
}

struct SquaresRow {
  std::int64_t first_block, n;
  const void* x;
  DType dtype;
};

template <class T>
__device__ __forceinline__ double squares_of(const void* x, std::int64_t first, std::int64_t end) {
  double sum = 0;
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    const double v = static_cast<double>(static_cast<arithmetic<T>>(static_cast<const T*>(x)[i]));
    sum += v * v;
  }
  return sum;
}

__global__ void squares_kernel(const SquaresRow* rows, int count, double* partial) {
  double* const sums = shared<double>();
  const SquaresRow r = row_of_block(rows, count, std::int64_t{blockIdx.x});
  const std::int64_t first = (std::int64_t{blockIdx.x} - r.first_block) * squares_block, end = min(r.n, first + squares_block);
  sums[threadIdx.x] = r.dtype == DType::f32   ? squares_of<float>(r.x, first, end)
                      : r.dtype == DType::f64 ? squares_of<double>(r.x, first, end)
                                              : squares_of<bfloat16>(r.x, first, end);
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

}  // namespace

void adamw(std::span<const AdamWUpdate> updates) {
  if (updates.empty()) return;
  dispatch_float(updates[0].parameter.dtype(), "adamw", [&]<class T>() {
    std::vector<AdamWRow<T>> rows;
    std::int64_t blocks = 0;
    for (const AdamWUpdate& u : updates) {
      const std::int64_t n = u.parameter.numel();
      if (n == 0) continue;
      const AdamWStep& s = u.step;
      rows.push_back({blocks, n, elements<T>(u.gradient), elements<T>(u.parameter), elements<T>(u.moment1), elements<T>(u.moment2),
                      static_cast<T>(s.beta1), static_cast<T>(1 - s.beta1), static_cast<T>(s.beta2), static_cast<T>(1 - s.beta2),
                      static_cast<T>(s.lr * s.weight_decay), static_cast<T>(s.lr), static_cast<T>(s.eps), static_cast<T>(s.correction1),
                      static_cast<T>(s.correction2), static_cast<T>(s.gradient_scale)});
      blocks += (n + adamw_block - 1) / adamw_block;
    }
    if (rows.empty()) return;
    const Table<AdamWRow<T>> table(rows);
    launch(adamw_kernel<T>, dim3{static_cast<unsigned>(blocks), 1, 1}, dim3{block_threads, 1, 1}, 0, table.data(), static_cast<int>(rows.size()));
  });
}

void sgd(const SgdStep& s, const Array& gradient, const Out& parameter, const Out& velocity) {
  dispatch_float(parameter.dtype(), "sgd", [&]<class T>() {
    launch_for(parameter.numel(), sgd_kernel<T>, elements<T>(gradient), elements<T>(parameter), velocity.defined() ? elements<T>(velocity) : nullptr,
               static_cast<T>(s.lr), static_cast<T>(s.momentum), static_cast<T>(s.weight_decay), static_cast<T>(s.gradient_scale), s.nesterov,
               parameter.numel());
  });
}

void adagrad(const AdagradStep& s, const Array& gradient, const Out& parameter, const Out& squares) {
  dispatch_float(parameter.dtype(), "adagrad", [&]<class T>() {
    launch_for(parameter.numel(), adagrad_kernel<T>, elements<T>(gradient), elements<T>(parameter), elements<T>(squares), static_cast<T>(s.lr),
               static_cast<T>(s.eps), static_cast<T>(s.weight_decay), static_cast<T>(s.gradient_scale), parameter.numel());
  });
}

void sum_of_squares(std::span<const Array> arrays, const Out& sum) {
  std::vector<SquaresRow> rows;
  std::int64_t blocks = 0;
  for (const Array& x : arrays) {
    if (x.numel() == 0) continue;
    rows.push_back({blocks, x.numel(), x.address(), x.dtype()});
    blocks += (x.numel() + squares_block - 1) / squares_block;
  }
  if (rows.empty()) return fill(0, sum);
  const Table<SquaresRow> table(rows);
  const Out partial(Array(Shape{blocks}, DType::f64, Device::cuda));
  launch(squares_kernel, dim3{static_cast<unsigned>(blocks), 1, 1}, dim3{block_threads, 1, 1}, block_threads * sizeof(double), table.data(),
         static_cast<int>(rows.size()), elements<double>(partial));
  launch_add_all<double>(elements<double>(partial), blocks, 1.0, elements<double>(sum));
}

}  // namespace plumb::cuda
