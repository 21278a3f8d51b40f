#include "core/backend.h"

#include "backends/cuda/runtime.h"
#include "backends/cuda/through_host.h"

namespace plumb {

const Kernels& cuda_kernels() {
  cuda::stream();  // throws where there is no device
  static constexpr Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = cuda::through_host<&Kernels::name>,
#include "core/kernels.def"
  };
  return table;
}

}  // namespace plumb
