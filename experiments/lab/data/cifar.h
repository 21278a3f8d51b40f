// The CIFAR binary files: records without a header, one or two label bytes and 3072 pixel bytes (red, green, blue plane
// of 32x32).
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// CIFAR-10: the records of all `paths`, in order; 3073 bytes each, label 0..9.
ImageSet read_cifar10(const std::vector<std::string>& paths);

// CIFAR-100: 3074 bytes each, coarse label 0..19, then the fine label 0..99, which is kept.
ImageSet read_cifar100(const std::vector<std::string>& paths);

// Both: files plain or gzip, with any whole number of records; Error (one line, the file first) for a partial record or
// a label that is out of range.

}  // namespace plumb::lab
