// A reader for IDX, the file format of MNIST and Fashion-MNIST. A file consists of the magic number 00 00 08 d
// (unsigned bytes, d dimensions), d big-endian sizes of 32 bits, and the bytes of the data.
#pragma once

#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// Reads grey images [N, 1, H, W] from one file and their labels 0..9 from a second file. The files may be plain or
// gzip. Images smaller than 32 x 32 are padded to 32 x 32. Throws Error if a file is cut off, too long or in another
// format, if the two files have different counts, or if the images have more than 1024 x 1024 pixels or need more
// memory than InputFile::most_memory(); the message is one line that begins with the path.
ImageSet read_idx(const std::string& images_path, const std::string& labels_path);

}  // namespace plumb::vision
