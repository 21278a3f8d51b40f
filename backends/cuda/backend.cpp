#include "core/backend.h"

#include "backends/cuda/kernels.h"
#include "backends/cuda/runtime.h"
#include "backends/elsewhere.h"

namespace plumb {
namespace {

constexpr Kernels table_of_kernels() {
  // What the device does not have yet goes through the host ..
  Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = elsewhere<&Kernels::name, Device::cpu>,
#include "core/kernels.def"
  };
  // .. and what it has.
  table.fill = cuda::fill;
  table.cast = cuda::cast;
  table.unary = cuda::unary;
  table.binary = cuda::binary;
  table.where = cuda::where;
  table.broadcast = cuda::broadcast;
  table.permute = cuda::permute;
  table.slice = cuda::slice;
  table.assign_slice = cuda::assign_slice;
  table.gather = cuda::gather;
  table.scatter_add = cuda::scatter_add;
  table.dropout = cuda::dropout;
  return table;
}

}  // namespace

const Kernels& cuda_kernels() {
  cuda::stream();  // throws where there is no device
  static constexpr Kernels table = table_of_kernels();
  return table;
}

}  // namespace plumb
