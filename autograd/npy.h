// Writes tensors to NumPy's .npy files, and reads arrays from such files.
#pragma once

#include <filesystem>

#include "autograd/tensor.h"

namespace plumb {

// Writes the values of x, row-major and little-endian; the file is complete or absent. f32, f64, i64 and u8 become
// float32, float64, int64 and uint8, which np.load reads. Throws Error for bf16, which NumPy does not have (cast() it
// to f32), and if the file cannot be written.
void save_npy(const std::filesystem::path& path, const Tensor& x);

// Reads a file that np.save wrote: float32, float64, int64, uint8 or bool (as u8), little-endian, row-major or
// column-major (Fortran), format versions 1 to 3. The result is a constant with the dtype of the file. Throws Error
// with the path for another dtype, and for a file that is not .npy, too short or too long for its array.
Tensor load_npy(const std::filesystem::path& path, Device device = defaults().device);

}  // namespace plumb
