#include "backends/cuda/kernels.h"
#include "backends/cuda/runtime.h"
#include "backends/with_results.h"

namespace plumb {

const Kernels& cuda_kernels() {
  cuda::stream();  // stream() throws Error if there is no device
  static constexpr Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = with_results<cuda::name>,
#include "core/kernels.def"
  };
  return table;
}

}  // namespace plumb
