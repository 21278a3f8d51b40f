// Readers for the binary files of CIFAR-10 and CIFAR-100. A file is a sequence of records without a header; a record
// has one or two label bytes and 3072 pixel bytes (the red, green and blue plane of 32x32 pixels).
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// Read the records of all `paths`, in order. A file may be plain or gzip. Throw Error for an incomplete record, a label
// out of range or a file without records; the message is one line that begins with the path.
//
// CIFAR-10 has records of 3073 bytes with a label in 0..9. CIFAR-100 has records of 3074 bytes with a coarse label in
// 0..19 and a fine label in 0..99; the result has the fine labels.
ImageSet read_cifar10(const std::vector<std::string>& paths);
ImageSet read_cifar100(const std::vector<std::string>& paths);

}  // namespace plumb::lab
