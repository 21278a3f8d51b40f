#include "backends/reference/kernels.h"

namespace plumb {

const Kernels& reference_kernels() {
  static constexpr Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = reference::name,
#include "core/kernels.def"
  };
  return table;
}

}  // namespace plumb
