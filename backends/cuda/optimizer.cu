// The optimizers, the moving average and the sum of squares. (Formulas: backends/reference/optimizer.cpp.) One launch
// covers all parameters; for the sum of squares, one launch covers up to 160 arrays.
//   AdamW, SGD, Adagrad, moving average: one block per 1024 elements. A block finds its tensor in a table, which is
//     uploaded once a call. The table of the moving average does not change between steps, so the table is uploaded
//     only if it differs from the last table.
//   LAMB: one block per tensor, because the trust ratio needs norms of the whole tensor. Directions are computed
//     twice instead of stored.
//   Sum of squares: one block per 4096 elements, in f64. Then one block adds the partial sums in order. The table is
//     a parameter of the launch.
// Traffic: each element of the gradient, the parameter and the optimizer's state is read once, and written once if the
// element changes. LAMB reads everything except the gradient twice.
#include <cstring>
#include <limits>
#include <optional>

#include "backends/cuda/kernels.h"
#include "backends/cuda/pack.cuh"
#include "backends/cuda/rows.cuh"
#include "core/memory.h"

namespace plumb::cuda {
namespace {

constexpr std::int64_t update_block = 1024, squares_block = 4096;  // number of elements per block

// A copy of a host table on the device. A kernel that was launched before the Table is destroyed may still use the
// copy.
template <class Row>
class Table {
 public:
  explicit Table(const std::vector<Row>& rows)
      : bytes_(Shape{static_cast<std::int64_t>(rows.size() * sizeof(Row))}, DType::u8, Device::cuda) {
    memory_of(Device::cuda).upload(rows.data(), Out(bytes_).mutable_address(), rows.size() * sizeof(Row));
  }
  const Row* data() const { return reinterpret_cast<const Row*>(elements<std::uint8_t>(bytes_)); }

 private:
  Array bytes_;
};

// A Table that is kept between calls. The table is uploaded again only if the rows have changed.
template <class Row>
class KeptTable {
 public:
  const Row* of(const std::vector<Row>& rows) {
    if (!table_ || rows != rows_) {
      table_.emplace(rows);
      rows_ = rows;
    }
    return table_->data();
  }

 private:
  std::vector<Row> rows_;
  std::optional<Table<Row>> table_;
};

// Returns the row whose blocks contain `block`. The rows are sorted by first_block, and the first row begins at block
// 0.
template <class Row>
__device__ __forceinline__ const Row& row_of_block(const Row* rows, int count, std::int64_t block) {
  int low = 0, high = count;  // invariant: rows[low].first_block <= block < rows[high].first_block
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (rows[middle].first_block <= block ? low : high) = middle;
  }
  return rows[low];
}

// Each row type describes one tensor. row(i, scale) updates element i of the tensor. `scale` is the scale of the
// gradients.
template <class T>
struct AdamWRow {
  using Element = T;
  std::int64_t first_block, n;
  const T* gradient;
  T *parameter, *moment1, *moment2;
  T beta1, rest1, beta2, rest2;                  // rest1, rest2: 1 - beta1 and 1 - beta2, computed by the host in f64
  T decay, rate, eps, correction1, correction2;  // decay: lr wd for AdamW, wd for LAMB

  __device__ __forceinline__ T direction(std::int64_t i) const {
    return (moment1[i] / correction1) / (std::sqrt(moment2[i] / correction2) + eps);
  }
  __device__ __forceinline__ void move_moments(std::int64_t i, T scale) const {
    const T g = scale * gradient[i];
    moment1[i] = beta1 * moment1[i] + rest1 * g;
    moment2[i] = beta2 * moment2[i] + rest2 * g * g;
  }
  __device__ __forceinline__ void operator()(std::int64_t i, T scale) const {
    move_moments(i, scale);
    const T p = parameter[i];
    parameter[i] = p - decay * p - rate * direction(i);
  }
};

template <class T>
struct SgdRow {
  using Element = T;
  std::int64_t first_block, n;
  const T* gradient;
  T *parameter, *velocity;
  T rate, momentum, decay;
  bool nesterov;

  __device__ __forceinline__ void operator()(std::int64_t i, T scale) const {
    T g = scale * gradient[i] + decay * parameter[i];
    if (velocity) {
      const T v = momentum * velocity[i] + g;
      velocity[i] = v;
      g = nesterov ? g + momentum * v : v;
    }
    parameter[i] -= rate * g;
  }
};

template <class T>
struct AdagradRow {
  using Element = T;
  std::int64_t first_block, n;
  const T* gradient;
  T *parameter, *squares;
  T rate, eps, decay;

  __device__ __forceinline__ void operator()(std::int64_t i, T scale) const {
    const T g = scale * gradient[i] + decay * parameter[i], sum = squares[i] + g * g;
    squares[i] = sum;
    parameter[i] -= rate * g / (std::sqrt(sum) + eps);
  }
};

template <class Row>
__global__ void update_kernel(const Row* rows, int count, const StepState* state) {
  if (state && state->goes_on == 0) return;
  const auto scale = static_cast<typename Row::Element>(state ? state->scale : 1);
  const Row r = row_of_block(rows, count, std::int64_t{blockIdx.x});
  const std::int64_t first = (std::int64_t{blockIdx.x} - r.first_block) * update_block;
  for (std::int64_t i = first + threadIdx.x; i < min(r.n, first + update_block); i += blockDim.x) r(i, scale);
}

template <class T>
struct EmaRow {
  std::int64_t first_block, n;
  const T* value;
  T* average;
  bool operator==(const EmaRow&) const = default;
};

template <class T>
__global__ void ema_kernel(const EmaRow<T>* rows, int count, T rate) {
  const EmaRow<T> r = row_of_block(rows, count, std::int64_t{blockIdx.x});
  const std::int64_t first = (std::int64_t{blockIdx.x} - r.first_block) * update_block;
  for (std::int64_t i = first + threadIdx.x; i < min(r.n, first + update_block); i += blockDim.x)
    r.average[i] += rate * (r.value[i] - r.average[i]);
}

template <class T>
__global__ void __launch_bounds__(1024) lamb_kernel(const AdamWRow<T>* rows, const StepState* state) {
  if (state && state->goes_on == 0) return;  // the condition is the same for all blocks of the grid
  double* const sums = shared<double>();
  const T scale = static_cast<T>(state ? state->scale : 1);
  const AdamWRow<T> r = rows[blockIdx.x];
  double of_parameter = 0, of_direction = 0;
  for (std::int64_t i = threadIdx.x; i < r.n; i += blockDim.x) {
    r.move_moments(i, scale);
    const double p = r.parameter[i], d = r.direction(i) + r.decay * r.parameter[i];
    of_parameter += p * p, of_direction += d * d;
  }
  const double p = block_sum(of_parameter, sums), d = block_sum(of_direction, sums);
  const T rate = r.rate * static_cast<T>(r.decay > 0 && p > 0 && d > 0 ? std::sqrt(p) / std::sqrt(d) : 1);
  for (std::int64_t i = threadIdx.x; i < r.n; i += blockDim.x)  // a thread reads only elements that it has updated
    r.parameter[i] -= rate * (r.direction(i) + r.decay * r.parameter[i]);
}

const StepState* state_of(const Array& state) { return reinterpret_cast<const StepState*>(elements<double>(state)); }

// Returns a table of the tensors that have elements. row_of(update, first_block) makes the row of an update. Adds the
// number of blocks that the rows need to `blocks`.
template <class Row, class Update, class RowOf>
std::vector<Row> table_of(std::span<const Update> updates, std::int64_t& blocks, RowOf&& row_of) {
  std::vector<Row> rows;
  for (const Update& u : updates) {
    const Row row = row_of(u, blocks);
    if (row.n == 0) continue;
    rows.push_back(row);
    blocks += (row.n + update_block - 1) / update_block;
  }
  return rows;
}

template <class Row, class Update, class RowOf>
void update_all(std::span<const Update> updates, const Array& state, RowOf&& row_of) {
  std::int64_t blocks = 0;
  const std::vector<Row> rows = table_of<Row>(updates, blocks, row_of);
  if (rows.empty()) return;
  const Table<Row> table(rows);
  launch(update_kernel<Row>, dim3{static_cast<unsigned>(blocks), 1, 1}, dim3{block_threads, 1, 1}, 0, table.data(),
         static_cast<int>(rows.size()), state_of(state));
}

template <class T>
AdamWRow<T> adam_row(const AdamWUpdate& u, std::int64_t first_block, double decay) {
  const AdamWStep& s = u.step;
  return {first_block,
          u.parameter.numel(),
          elements<T>(u.gradient),
          in_place<T>(u.parameter),
          in_place<T>(u.moment1),
          in_place<T>(u.moment2),
          static_cast<T>(s.beta1),
          static_cast<T>(1 - s.beta1),
          static_cast<T>(s.beta2),
          static_cast<T>(1 - s.beta2),
          static_cast<T>(decay),
          static_cast<T>(s.lr),
          static_cast<T>(s.eps),
          static_cast<T>(s.correction1),
          static_cast<T>(s.correction2)};
}

struct SquaresRow {
  std::int64_t first_block, n;
  const void* x;
};
constexpr int squares_rows = 160;  // number of rows per launch; kernel parameters are limited to 4 KB
struct SquaresTable {
  SquaresRow rows[squares_rows];
  unsigned char dtypes[squares_rows];
  int count;
};
static_assert(sizeof(SquaresTable) + 8 <= 4096);

template <class T>
__device__ __forceinline__ double squares_of(const void* x, std::int64_t first, std::int64_t end) {
  double sum = 0;
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    const double v = static_cast<double>(static_cast<arithmetic<T>>(static_cast<const T*>(x)[i]));
    sum += v * v;
  }
  return sum;
}

__global__ void squares_kernel(const __grid_constant__ SquaresTable table, double* partial) {
  double* const sums = shared<double>();
  const SquaresRow& r = row_of_block(table.rows, table.count, std::int64_t{blockIdx.x});
  const auto dtype = static_cast<DType>(table.dtypes[&r - table.rows]);
  const std::int64_t first = (std::int64_t{blockIdx.x} - r.first_block) * squares_block,
                     end = min(r.n, first + squares_block);
  const double sum = block_sum(dtype == DType::f32   ? squares_of<float>(r.x, first, end)
                               : dtype == DType::f64 ? squares_of<double>(r.x, first, end)
                                                     : squares_of<bfloat16>(r.x, first, end),
                               sums);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0; }

template <class T>
__global__ void step_state_kernel(const T* loss, const double* squared_norm, double max_norm, const StepState* before,
                                  StepState* state) {
  if (threadIdx.x > 0) return;
  const double value = loss ? static_cast<double>(*loss) : 0, squares = *squared_norm,
               scale = max_norm / (std::sqrt(squares) + 1e-6);
  const bool goes_on = (!before || before->goes_on != 0) && is_finite(value) && is_finite(squares);
  *state = {scale < 1 ? scale : 1, goes_on ? 1.0 : 0.0, value, squares};
}

}  // namespace

void adamw(std::span<const AdamWUpdate> updates, const Array& state) {
  if (updates.empty()) return;
  dispatch_float(updates[0].parameter.dtype(), "adamw", [&]<class T>() {
    update_all<AdamWRow<T>>(updates, state, [](const AdamWUpdate& u, std::int64_t first) {
      return adam_row<T>(u, first, u.step.lr * u.step.weight_decay);
    });
  });
}

void lamb(std::span<const AdamWUpdate> updates, const Array& state) {
  if (updates.empty()) return;
  dispatch_float(updates[0].parameter.dtype(), "lamb", [&]<class T>() {
    std::int64_t blocks = 0;
    const std::vector<AdamWRow<T>> rows = table_of<AdamWRow<T>>(
        updates, blocks,
        [](const AdamWUpdate& u, std::int64_t first) { return adam_row<T>(u, first, u.step.weight_decay); });
    if (rows.empty()) return;
    const Table<AdamWRow<T>> table(rows);
    launch(lamb_kernel<T>, dim3{static_cast<unsigned>(rows.size()), 1, 1}, dim3{1024, 1, 1}, 1024 * sizeof(double),
           table.data(), state_of(state));
  });
}

void sgd(std::span<const SgdUpdate> updates, const Array& state) {
  if (updates.empty()) return;
  dispatch_float(updates[0].parameter.dtype(), "sgd", [&]<class T>() {
    update_all<SgdRow<T>>(updates, state, [](const SgdUpdate& u, std::int64_t first) {
      return SgdRow<T>{first,
                       u.parameter.numel(),
                       elements<T>(u.gradient),
                       in_place<T>(u.parameter),
                       in_place<T>(u.velocity),
                       static_cast<T>(u.step.lr),
                       static_cast<T>(u.step.momentum),
                       static_cast<T>(u.step.weight_decay),
                       u.step.nesterov};
    });
  });
}

void adagrad(std::span<const AdagradUpdate> updates, const Array& state) {
  if (updates.empty()) return;
  dispatch_float(updates[0].parameter.dtype(), "adagrad", [&]<class T>() {
    update_all<AdagradRow<T>>(updates, state, [](const AdagradUpdate& u, std::int64_t first) {
      return AdagradRow<T>{first,
                           u.parameter.numel(),
                           elements<T>(u.gradient),
                           in_place<T>(u.parameter),
                           in_place<T>(u.squares),
                           static_cast<T>(u.step.lr),
                           static_cast<T>(u.step.eps),
                           static_cast<T>(u.step.weight_decay)};
    });
  });
}

void ema(double rate, std::span<const EmaUpdate> updates) {
  if (updates.empty()) return;
  dispatch_float(updates[0].average.dtype(), "ema", [&]<class T>() {
    std::int64_t blocks = 0;
    const std::vector<EmaRow<T>> rows =
        table_of<EmaRow<T>>(updates, blocks, [](const EmaUpdate& u, std::int64_t first) {
          return EmaRow<T>{first, u.average.numel(), elements<T>(u.value), in_place<T>(u.average)};
        });
    if (rows.empty()) return;
    static thread_local KeptTable<EmaRow<T>> table;  // per thread, because a thread trains one model at a time
    launch(ema_kernel<T>, dim3{static_cast<unsigned>(blocks), 1, 1}, dim3{block_threads, 1, 1}, 0, table.of(rows),
           static_cast<int>(rows.size()), static_cast<T>(rate));
  });
}

void sum_of_squares(std::span<const Array> arrays, const Out& sum) {
  const auto blocks_of = [](const Array& x) { return (x.numel() + squares_block - 1) / squares_block; };
  std::int64_t blocks = 0;
  for (const Array& x : arrays) blocks += blocks_of(x);
  if (blocks == 0) return fill(0, sum);
  const Out partial(Array(Shape{blocks}, DType::f64, Device::cuda));
  double* next = elements<double>(partial);
  SquaresTable table{};
  std::int64_t of_table = 0;
  const auto flush = [&] {
    if (table.count == 0) return;
    launch(squares_kernel, dim3{static_cast<unsigned>(of_table), 1, 1}, dim3{block_threads, 1, 1},
           block_threads * sizeof(double), table, next);
    next += of_table, of_table = 0, table.count = 0;
  };
  for (const Array& x : arrays) {
    if (x.numel() == 0) continue;
    if (table.count == squares_rows) flush();
    count_bytes(static_cast<std::int64_t>(x.size_in_bytes()));
    table.rows[table.count] = {of_table, x.numel(), x.address()};
    table.dtypes[table.count++] = static_cast<unsigned char>(x.dtype());
    of_table += blocks_of(x);
  }
  flush();
  launch_add_all<double>(elements<double>(partial), blocks, 1.0, elements<double>(sum));
}

void step_state(const Array& loss, const Array& squared_norm, double max_norm, const Array& before, const Out& state) {
  dispatch_float(loss.defined() ? loss.dtype() : DType::f64, "step_state", [&]<class T>() {
    launch(step_state_kernel<T>, dim3{1, 1, 1}, dim3{32, 1, 1}, 0, elements<T>(loss), elements<double>(squared_norm),
           max_norm, state_of(before), reinterpret_cast<StepState*>(elements<double>(state)));
  });
}

}  // namespace plumb::cuda
