// Loads batches of normalised images, in random order for training and in the order of the set for evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/data/augment.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/data/prefetch.h"

namespace plumb::lab {

// A batch of images and labels in host memory.
struct HostBatch {
  std::vector<float> images;         // [B, channels, height, width], normalised
  std::vector<std::int64_t> labels;  // [B]
  // In a mixed batch (mixup, CutMix): the share of image i that belongs to its label. The rest of image i belongs to
  // the label of image B - 1 - i.
  double share = 1;
  std::int64_t first = 0;  // position of the first sample in the order of the epoch, or in the set
  std::int64_t epoch = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }  // the number of images
};

// Settings of a BatchLoader.
struct LoaderOptions {
  std::int64_t batch = 64;
  std::uint64_t seed = 0;
  Augmentation augment = {};
  // Number of threads that prepare the images of a batch. More than one is worth it if images are read from files.
  std::int64_t workers = 1;
  std::int64_t start_step = 0;  // the loader begins with batch `start_step` of the training
};

// The order of the samples in an epoch: a permutation of 0 ... count - 1 that depends only on seed and epoch.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

// An endless sequence of training batches, the same for any number of workers. Batch k of the training is batch k % n
// of epoch k / n, where n = set size / batch (rounded down). An epoch leaves out the samples after the n-th batch. If
// images are repeated, it also leaves out the samples that would follow the copies. A background thread prepares the
// next two batches.
class BatchLoader {
 public:
  // `set` must outlive the loader. Throws Error if the set is empty or smaller than a batch, if it has another number
  // of channels than the normalization, or if an option is out of range.
  BatchLoader(const ImageSet& set, Normalization normalization, LoaderOptions options);
  BatchLoader(ImageSet&&, Normalization, LoaderOptions) = delete;

  // The next batch. Rethrows the Error of an image file that cannot be read.
  HostBatch next() { return ahead_.next(); }

 private:
  Prefetch<HostBatch> ahead_;
};

// The images first ... first + count - 1 of the set, in order. Throws Error if the set does not have them.
HostBatch evaluation_batch(const ImageSet& set, const Normalization& normalization, std::int64_t first,
                           std::int64_t count, std::int64_t workers = 1);

// The number of threads that should load the images of a set: num_threads() for files, and 1 for images in memory,
// which load faster than a thread starts.
std::int64_t loading_threads(const ImageSet& set);

}  // namespace plumb::lab
