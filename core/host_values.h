// Copies several arrays from host memory at once.
#pragma once

#include <vector>

#include "core/array.h"

namespace plumb {

// The elements of one array in host memory, as input of arrays_from().
struct HostValues {
  const void* data;
  Shape shape;
  DType dtype;
};
// New arrays with these values. All arrays share one buffer, so that one copy brings all values to the device.
std::vector<Array> arrays_from(const std::vector<HostValues>& values, Device device);

}  // namespace plumb
