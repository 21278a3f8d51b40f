#include "backends/reference/kernels.h"
#include "backends/with_results.h"

namespace plumb {

const Kernels& reference_kernels() {
  static constexpr Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = with_results<reference::name>,
#include "core/kernels.def"
  };
  return table;
}

}  // namespace plumb
