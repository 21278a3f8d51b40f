// Numbers on their way to the host: what a step leaves behind, read a step later, so that a device has work meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "core/array.h"
#include "core/memory.h"

namespace plumb {

// The elements of an array, of any dtype, as they are when all that the device has been asked for before is done. A
// handle: copies share it.
class Readback {
 public:
  // Begins to fetch them. Throws for more than Memory::most_at_once bytes.
  explicit Readback(const Array& a);

  bool arrived() const { return download_->arrived(); }  // whether values() would not wait
  std::vector<double> values() const;

 private:
  std::shared_ptr<Download> download_;
  DType dtype_;
  std::int64_t numel_;
};

}  // namespace plumb
