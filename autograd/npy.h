// NumPy's .npy files: one array each, so that it can be looked at in Python and brought back.
#pragma once

#include <filesystem>

#include "autograd/tensor.h"

namespace plumb {

// Writes x's values, row-major, little-endian; the file is whole or absent. f32, f64, i64 and u8 become float32,
// float64, int64 and uint8, which np.load reads. Throws for bf16, which NumPy does not have: cast() it to f32.
void save_npy(const std::filesystem::path& path, const Tensor& x);

// Reads what np.save wrote: float32, float64, int64, uint8 or bool (as u8), little-endian, row-major or column-major
// (Fortran), formats 1 to 3. A constant of the file's dtype. Throws, with the path, for other dtypes, and for a file
// that is cut off, longer than its array, or none.
Tensor load_npy(const std::filesystem::path& path, Device device = defaults().device);

}  // namespace plumb
