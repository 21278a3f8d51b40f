// Matrix products. cuBLASLt expects column-major matrices. A row-major [r, c] matrix is a column-major [c,
// r] matrix. Therefore y = op(a) op(b) is computed as y^T = op(b)^T op(a)^T. The rows of y^T are the columns of y, so a
// bias with one value per row of y^T has one value per column of y.
#include "backends/cuda/products.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/runtime.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20, workspace_alignment = 256;

// Returns the alignment of an address: the largest power of two that divides the address, at most 64. Every array
// begins at a multiple of 64.
std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 64;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

void cublas_checked(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) check_device();
  check(status == CUBLAS_STATUS_SUCCESS, "[cuda] {} failed with cuBLAS status {}", call, static_cast<int>(status));
}
#define PLUMB_CUBLAS_CHECKED(call) cublas_checked(cublaslt().call, #call)

// An owned descriptor of cuBLASLt.
template <class T, auto destroy>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Owned& operator=(Owned other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Owned() {
    if (value_) (cublaslt().*destroy)(value_);
  }
  T* to_make() { return &value_; }
  operator T() const { return value_; }

 private:
  T value_ = nullptr;
};
using Operation = Owned<cublasLtMatmulDesc_t, &CublasLt::cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &CublasLt::cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &CublasLt::cublasLtMatmulPreferenceDestroy>;

cudaDataType type_of(DType dtype) {
  return dtype == DType::f64 ? CUDA_R_64F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

struct Plan {
  Operation operation;
  Layout left, right, result;
  std::optional<cublasLtMatmulAlgo_t> algorithm;  // no value: cuBLASLt refuses the product
  std::size_t workspace = 0;
};

// Whether the status means that cuBLASLt does not support this product. Other statuses are failures.
bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  PLUMB_CUBLAS_CHECKED(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  PLUMB_CUBLAS_CHECKED(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  PLUMB_CUBLAS_CHECKED(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

// Describes a dense row-major matrix [rows, columns].
Layout layout(const Product& p, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  Layout made;
  PLUMB_CUBLAS_CHECKED(cublasLtMatrixLayoutCreate(made.to_make(), type_of(dtype), static_cast<std::uint64_t>(columns),
                                                  static_cast<std::uint64_t>(rows), columns));
  if (p.count > 1) {
    set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(p.count));
    set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  return made;
}

class Library {
 public:
  Library() {
    workspace_ =
        Array(Shape{static_cast<std::int64_t>(workspace_bytes + workspace_alignment)}, DType::u8, Device::cuda);
    const auto first = reinterpret_cast<std::uintptr_t>(Out(workspace_).mutable_address());
    aligned_workspace_ =
        reinterpret_cast<void*>((first + workspace_alignment - 1) / workspace_alignment * workspace_alignment);
    PLUMB_CUBLAS_CHECKED(cublasLtCreate(&handle_));  // last, because a lack of memory for the workspace would leak it
  }

  void multiply(const Product& p, const void* a, const void* b, const void* bias, void* y) {
    const std::lock_guard lock(mutex_);
    const Key key{p, alignment_of(a), alignment_of(b), alignment_of(y)};
    Plan& plan = plan_of(key, bias);
    if (p.bias && plan.algorithm) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, sum = p.add_to_y ? 1 : 0;
    const double one64 = 1, sum64 = sum;
    const bool f64 = p.dtype == DType::f64;
    const auto matrices = [&](std::int64_t stride) { return stride != 0 ? p.count : 1; };
    const std::int64_t operands = matrices(p.stride_a) * p.M * p.K + matrices(p.stride_b) * p.K * p.N,
                       results = (p.add_to_y ? 2 : 1) * p.count * p.M * p.N + (p.bias ? p.N : 0);
    counters.bytes += static_cast<std::uint64_t>(operands) * size_of(p.operands()) +
                      static_cast<std::uint64_t>(results) * size_of(p.dtype);
    if (!plan.algorithm) return multiply_plainly(p, a, b, bias, y);
    const cublasStatus_t status =
        cublaslt().cublasLtMatmul(handle_, plan.operation, f64 ? static_cast<const void*>(&one64) : &one, b, plan.left,
                                  a, plan.right, f64 ? static_cast<const void*>(&sum64) : &sum, y, plan.result, y,
                                  plan.result, &*plan.algorithm, aligned_workspace_, plan.workspace, stream());
    if (is_refusal(status)) {  // some refusals come this late
      plan.algorithm.reset();
      return multiply_plainly(p, a, b, bias, y);
    }
    ++counters.launches;
    checked(status, "in", key);
  }

 private:
  // The values that determine the choice of an algorithm. The alignment of the bias is not part of the key, because a
  // bias is always aligned like the beginning of an array.
  struct Key {
    Product product;
    std::uint32_t alignment_a, alignment_b, alignment_y;
    auto operator<=>(const Key&) const = default;

    // The product in words, for messages.
    std::string text() const {
      const Product& p = product;
      return fmt::format(
          "{} products of [{}, {}]{} and [{}, {}]{}, operands {}, results {}{}{}, aligned to {}, {} and {} bytes",
          p.count, p.M, p.K, p.transpose_a ? " (transposed)" : "", p.K, p.N, p.transpose_b ? " (transposed)" : "",
          enum_name(p.operands()), enum_name(p.dtype), p.bias ? " with a bias" : "", p.add_to_y ? ", added to y" : "",
          alignment_a, alignment_b, alignment_y);
    }
  };

  static void checked(cublasStatus_t status, const char* when, const Key& key) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    check_device();
    fail(fmt::format("[cuda] cuBLASLt failed with status {} {} {}", static_cast<int>(status), when, key.text()));
  }

  Plan& plan_of(const Key& key, const void* bias) {
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    const Product& p = key.product;
    Plan plan;
    const bool f64 = p.dtype == DType::f64;
    PLUMB_CUBLAS_CHECKED(cublasLtMatmulDescCreate(plan.operation.to_make(),
                                                  f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, type_of(p.dtype)));
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    if (p.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    plan.left = layout(p, p.operands(), p.transpose_b ? p.N : p.K, p.transpose_b ? p.K : p.N, p.stride_b);
    plan.right = layout(p, p.operands(), p.transpose_a ? p.K : p.M, p.transpose_a ? p.M : p.K, p.stride_a);
    plan.result = layout(p, p.dtype, p.M, p.N, p.stride_y);
    Preference preference;
    PLUMB_CUBLAS_CHECKED(cublasLtMatmulPreferenceCreate(preference.to_make()));
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    // Split sums are allowed only in the type of the sums and in a fixed order, so that results have the same bits each
    // time.
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignment_b);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment_a);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment_y);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment_y);
    cublasLtMatmulHeuristicResult_t choice{};
    int found = 0;
    const cublasStatus_t status = cublaslt().cublasLtMatmulAlgoGetHeuristic(
        handle_, plan.operation, plan.left, plan.right, plan.result, plan.result, preference, 1, &choice, &found);
    if (!is_refusal(status)) checked(status, "in the choice of an algorithm for", key);
    if (status == CUBLAS_STATUS_SUCCESS && found > 0 && choice.state == CUBLAS_STATUS_SUCCESS) {
      plan.algorithm = choice.algo;
      plan.workspace = choice.workspaceSize;
    }
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  void* aligned_workspace_ = nullptr;
  Array workspace_;  // all products share the workspace, because they run one after another on one stream
  std::map<Key, Plan> plans_;
};

}  // namespace

void multiply(const Product& product, const void* a, const void* b, const void* bias, void* y) {
  static Library& library = *new Library;
  const std::int64_t elements = product.count * product.M * product.N;
  if (elements == 0) return;
  if (product.K > 0) return library.multiply(product, a, b, bias, y);
  internal_check(!product.bias && (product.count == 1 || product.stride_y == product.M * product.N),
                 "a product with K = 0 must have no bias and no gaps between its results");
  if (product.add_to_y) return;
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(product.dtype);
  counters.bytes += bytes;
  memory_of(Device::cuda).fill(y, 0, bytes);
}

}  // namespace plumb::cuda
