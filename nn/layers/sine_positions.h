// Positions of the cells of a grid as sines and cosines (Vaswani et al. 2017, in two dimensions as in DETR).
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// Returns the positions of the cells of a grid, row by row, [height width, dim]: the first half of the numbers is about
// the row, the second half about the column. With y in 1 .. height and u = 2 pi y / (height + 1e-6), the numbers of the
// row are sin(u / t_0), cos(u / t_0), sin(u / t_1), .. for t_k = 10000^(4 k / dim) (facebookresearch/detr,
// models/position_encoding.py). dtype and device are those of defaults(). Throws Error unless dim is a multiple of 4.
Tensor sine_positions(std::int64_t height, std::int64_t width, std::int64_t dim);
// Returns the positions for images with padding, [B, height width, dim]. keep [B, height, width], u8, is 1 for the
// cells of the image. y and x then count the kept cells from the top and from the left, and their last counts in the
// column and in the row take the place of height and width.
Tensor sine_positions(const Tensor& keep, std::int64_t dim);

}  // namespace plumb::nn
