#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"

namespace plumb::cpu {

void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Out& y) {
  product(a.shape(), a.data<float>(), transpose_a, b.shape(), b.data<float>(), transpose_b, y.shape(),
          y.mutable_data<float>());
}

}  // namespace plumb::cpu
