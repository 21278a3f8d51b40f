// Emulates cuBLASLt. A product is three loops, with sums in the type of the sums, added in blocks as on a device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/cuda/cublaslt.h"
#include "core/bfloat16.h"
#include "tests/cuda_emulator/runtime.h"

struct emulated_cublaslt {};
struct emulated_matmul {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct emulated_layout {
  cudaDataType type;
  std::int64_t rows, columns, leading;
  std::int32_t count = 1;
  std::int64_t stride = 0;
};
struct emulated_preference {
  std::size_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // the alignments of A, B, C and D
};

namespace {

constexpr std::size_t wanted_workspace = 4096;
// The number of products that are summed separately before their sum is added to the total.
#if defined(PLUMB_CUDA_PERTURBED)
constexpr std::int64_t block = std::int64_t{1} << 62;  // one chain of fused multiply-adds
#else
constexpr std::int64_t block = 64;
#endif

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "CUDA emulator: cublasLt: %s\n", what);
  std::abort();
}

template <class T>
cublasStatus_t take(T& target, const void* value, std::size_t bytes) {
  if (!value || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&target, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Checks whether the documentation allows the call and the emulator supports it.
cublasStatus_t examine(const emulated_matmul& op, const emulated_layout& a, const emulated_layout& b,
                       const emulated_layout& c, const emulated_layout& d) {
  const bool f64 = op.compute == CUBLAS_COMPUTE_64F;
  const cudaDataType type = f64 ? CUDA_R_64F : CUDA_R_32F;
  if (op.scale != type) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool bf16 = a.type == CUDA_R_16BF;  // bf16 operands, with sums and results in f32
  for (const emulated_layout* m : {&a, &b, &c, &d}) {
    if (m->type != (bf16 && !f64 && (m == &a || m == &b) ? CUDA_R_16BF : type)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m->leading < m->rows || m->rows <= 0 || m->columns <= 0 || m->count != d.count)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::int64_t M = op.transpose_a ? a.columns : a.rows, K = op.transpose_a ? a.rows : a.columns,
                     N = op.transpose_b ? b.rows : b.columns;
  if ((op.transpose_b ? b.columns : b.rows) != K || d.rows != M || d.columns != N || c.rows != M || c.columns != N)
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class Operand>
void compute(const emulated_matmul& op, T alpha, const Operand* a, const emulated_layout& al, const Operand* b,
             const emulated_layout& bl, T beta, const T* c, const emulated_layout& cl, T* d,
             const emulated_layout& dl) {
  const std::int64_t K = op.transpose_a ? al.rows : al.columns;
  const std::int64_t a_row = op.transpose_a ? al.leading : 1, a_column = op.transpose_a ? 1 : al.leading;
  const std::int64_t b_row = op.transpose_b ? bl.leading : 1, b_column = op.transpose_b ? 1 : bl.leading;
  const T* const bias = static_cast<const T*>(op.epilogue == CUBLASLT_EPILOGUE_BIAS ? op.bias : nullptr);
  for (std::int64_t i = 0; i < dl.count; ++i, a += al.stride, b += bl.stride, c += cl.stride, d += dl.stride)
    for (std::int64_t column = 0; column < dl.columns; ++column)
      for (std::int64_t row = 0; row < dl.rows; ++row) {
        T sum = 0;
        for (std::int64_t first = 0; first < K; first += block) {
          T part = 0;
          for (std::int64_t k = first; k < std::min(K, first + block); ++k)
            part += static_cast<T>(a[row * a_row + k * a_column]) * static_cast<T>(b[k * b_row + column * b_column]);
          sum += part;
        }
        // If beta is 0, C is not read. Therefore C may hold any values.
        const T before = beta == 0 ? T{0} : beta * c[row + column * cl.leading];
        d[row + column * dl.leading] = alpha * sum + before + (bias ? bias[row] : T{0});
      }
}

std::size_t bytes_of(const emulated_layout& m) {
  const std::int64_t last = (m.count - 1) * m.stride + (m.columns - 1) * m.leading + m.rows;
  return static_cast<std::size_t>(last) * (m.type == CUDA_R_64F ? 8 : m.type == CUDA_R_16BF ? 2 : 4);
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new emulated_cublaslt;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *operation = new emulated_matmul{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(operation->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(operation->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(operation->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(operation->bias, value, bytes);
  }
  fail("unsupported attribute of a matrix product");
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  *layout = new emulated_layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return take(layout->count, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return take(layout->stride, value, bytes);
  }
  fail("unsupported attribute of a matrix layout");
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new emulated_preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(preference->reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  }
  fail("unsupported matmul preference");
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  // cuBLASLt returns a status. That status is a refusal for the backend, so a mistake of the backend would go
  // unnoticed.
  if (examine(*operation, *a, *b, *c, *d) != CUBLAS_STATUS_SUCCESS) fail("the layouts do not fit the product");
  if (wanted < 1 || preference->workspace < wanted_workspace) return CUBLAS_STATUS_SUCCESS;
  if (const int failure = emulator::machine().cublaslt_failure) return static_cast<cublasStatus_t>(failure);
  if (emulator::machine().strict_cublaslt) {
    const std::int64_t K = operation->transpose_a ? a->rows : a->columns;
    if (d->rows == 1 || d->columns == 1 || K == 1) return CUBLAS_STATUS_INVALID_VALUE;
    for (const std::uint32_t alignment : preference->alignment)
      if (alignment < 16) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *results = {};
  results->state = static_cast<cublasStatus_t>(emulator::machine().cublaslt_state);
  results->workspaceSize = wanted_workspace;
  for (int i = 0; i < 4; ++i)
    results->algo.data[i] = preference->alignment[i];  // the algorithm requires the alignments of the preference
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (examine(*operation, *a_layout, *b_layout, *c_layout, *d_layout) != CUBLAS_STATUS_SUCCESS)
    fail("the layouts do not fit the product");
  if (emulator::enter() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!algorithm || workspace_bytes < wanted_workspace) fail("no algorithm, or too little workspace for it");
  if (emulator::machine().late_cublaslt) return CUBLAS_STATUS_NOT_SUPPORTED;
  const void* const operands[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<std::uintptr_t>(operands[i]) % algorithm->data[i] != 0)
      fail("an operand has a smaller alignment than the algorithm was chosen for");
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) fail("the workspace is not aligned to 256 bytes");
  const auto type_bytes = d_layout->type == CUDA_R_64F ? 8 : 4;
  emulator::check_device_memory(a, bytes_of(*a_layout), "cublasLtMatmul: A is not in device memory");
  emulator::check_device_memory(b, bytes_of(*b_layout), "cublasLtMatmul: B is not in device memory");
  emulator::check_device_memory(c, bytes_of(*c_layout), "cublasLtMatmul: C is not in device memory");
  emulator::check_device_memory(d, bytes_of(*d_layout), "cublasLtMatmul: D is not in device memory");
  emulator::check_device_memory(workspace, workspace_bytes, "cublasLtMatmul: the workspace is not in device memory");
  if (operation->epilogue == CUBLASLT_EPILOGUE_BIAS)
    emulator::check_device_memory(operation->bias, static_cast<std::size_t>(d_layout->rows * type_bytes),
                                  "cublasLtMatmul: the bias is not in device memory");
  // As in cuBLASLt, descriptors are read when the call is made. alpha and beta are in host memory.
  const emulated_matmul op = *operation;
  const emulated_layout al = *a_layout, bl = *b_layout, cl = *c_layout, dl = *d_layout;
  double factors[2];
  for (int i = 0; i < 2; ++i) {
    const void* const factor = i ? beta : alpha;
    float single;
    if (op.scale == CUDA_R_64F)
      std::memcpy(&factors[i], factor, 8);
    else
      std::memcpy(&single, factor, 4), factors[i] = single;
  }
  emulator::submit(stream, [=, one = factors[0], sum = factors[1]] {
    std::memset(workspace, 0xff, wanted_workspace);
    if (op.scale == CUDA_R_64F)
      compute(op, one, static_cast<const double*>(a), al, static_cast<const double*>(b), bl, sum,
              static_cast<const double*>(c), cl, static_cast<double*>(d), dl);
    else if (al.type == CUDA_R_16BF)
      compute(op, static_cast<float>(one), static_cast<const plumb::bfloat16*>(a), al,
              static_cast<const plumb::bfloat16*>(b), bl, static_cast<float>(sum), static_cast<const float*>(c), cl,
              static_cast<float*>(d), dl);
    else
      compute(op, static_cast<float>(one), static_cast<const float*>(a), al, static_cast<const float*>(b), bl,
              static_cast<float>(sum), static_cast<const float*>(c), cl, static_cast<float*>(d), dl);
  });
  return CUBLAS_STATUS_SUCCESS;
}

namespace plumb::cuda {

std::string why_no_cublaslt() { return ""; }

const CublasLt& cublaslt() {
#define PLUMB_CUBLASLT_TAKE(function) .function = &::function,
  static constexpr CublasLt functions{PLUMB_CUBLASLT_FUNCTIONS(PLUMB_CUBLASLT_TAKE)};
#undef PLUMB_CUBLASLT_TAKE
  return functions;
}

}  // namespace plumb::cuda
