// IDX, the format of MNIST and Fashion-MNIST: a big-endian magic 00 00 08 d (unsigned bytes, d dimensions), d sizes of
// 32 bits, bytes.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// Grey images [N, 1, H, W] and their labels 0..9, each file plain or gzip, padded to at least 32x32. Error (one line,
// the file first) when a file is cut off, too long, of another format, or the two differ in count.
ImageSet read_idx(const std::string& images_path, const std::string& labels_path);

}  // namespace plumb::lab
