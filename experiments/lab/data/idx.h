// A reader for IDX, the file format of MNIST and Fashion-MNIST. A file has the magic number 00 00 08 d (unsigned bytes,
// d dimensions), d big-endian sizes of 32 bits, and the bytes.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// Reads grey images [N, 1, H, W] and their labels 0..9 from two files, plain or gzip. Smaller images are padded to
// 32x32. Throws Error if a file is cut off, too long or in another format, or if the files have different counts; the
// message is one line that begins with the path.
ImageSet read_idx(const std::string& images_path, const std::string& labels_path);

}  // namespace plumb::lab
