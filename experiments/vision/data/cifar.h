// Readers for the binary files of CIFAR-10 and CIFAR-100. A file is a sequence of records without a header. A record
// has one or two label bytes and then 3072 pixel bytes (the red, green and blue plane of 32 x 32 pixels).
#pragma once

#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// Both functions read the records of all `paths`, in order. A file may be plain or gzip. Both functions throw
// Error for an incomplete record, a label out of range or a file without records; the message is one line that begins
// with the path.
//
// A record of CIFAR-10 has 3073 bytes, with a label in 0..9. A record of CIFAR-100 has 3074 bytes, with a coarse label
// in 0..19 and a fine label in 0..99; the result of read_cifar100() contains the fine labels.
ImageSet read_cifar10(const std::vector<std::string>& paths);
ImageSet read_cifar100(const std::vector<std::string>& paths);

}  // namespace plumb::vision
