#include "core/readback.h"

namespace plumb {

Readback::Readback(const Array& a) : dtype_(a.dtype()), numel_(a.numel()) {
  check(a.defined(), "[readback] {}", expected_a_tensor);
  check(a.size_in_bytes() <= Memory::most_at_once, "[readback] expected at most {} bytes, got {} {}: use to_vector()",
        Memory::most_at_once, enum_name(a.dtype()), a.shape());
  download_ = memory_of(a.device()).begin_download(a.address(), a.size_in_bytes());
}

std::vector<double> Readback::values() const {
  return dispatch_any(dtype_, [&]<class T>() {
    const T* const first = reinterpret_cast<const T*>(download_->bytes());
    return std::vector<double>(first, first + numel_);
  });
}

}  // namespace plumb
