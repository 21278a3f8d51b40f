// Max pooling: finds the index of the largest pixel of each window.
#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"

namespace plumb::reference {

void max_pool2d(const Array& x, const Pool2dOptions& options, const Out& index) {
  const std::int64_t H = x.dim(2), W = x.dim(3), rows = index.dim(2), columns = index.dim(3), windows = rows * columns;
  dispatch_float(x.dtype(), "max_pool2d", [&]<class T>() {
    for (std::int64_t i = 0; i < index.numel(); ++i) {
      const T* const plane = x.data<T>() + i / windows * H * W;
      const std::int64_t top = i % windows / columns * options.step() - options.padding,
                         left = i % columns * options.step() - options.padding;
      const std::int64_t first_row = std::max<std::int64_t>(top, 0), first_column = std::max<std::int64_t>(left, 0);
      std::int64_t best = first_row * W + first_column;
      for (std::int64_t r = first_row; r < std::min(top + options.kernel, H); ++r)
        for (std::int64_t c = first_column; c < std::min(left + options.kernel, W); ++c)
          if (const std::int64_t p = r * W + c;
              !std::isnan(plane[best]) && (std::isnan(plane[p]) || plane[p] > plane[best]))
            best = p;
      index.mutable_data<std::int64_t>()[i] = best;
    }
  });
}

}  // namespace plumb::reference
