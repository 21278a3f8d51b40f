// Readback: a copy of a few numbers to the host that does not wait, so that the device keeps working. A training loop
// reads the numbers of one step during the next step.
#pragma once

#include <memory>
#include <vector>

#include "core/array.h"
#include "core/memory.h"

namespace plumb {

// The elements of an array of any dtype, with their values after all work that was given to the device before. A
// handle: copies share the data.
class Readback {
 public:
  // Begins to copy the elements. Throws Error if `a` is undefined or has more than Memory::most_at_once bytes.
  explicit Readback(const Array& a);

  // Whether the elements have arrived, so that values() would not wait.
  bool arrived() const { return download_->arrived(); }
  // The elements, row-major, converted to double. Waits until the elements have arrived.
  std::vector<double> values() const;

 private:
  std::shared_ptr<Download> download_;
  DType dtype_;
  std::int64_t numel_;
};

}  // namespace plumb
