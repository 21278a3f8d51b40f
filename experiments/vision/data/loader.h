// Loads batches of normalized images: in random order for training, and in the order of the set for evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/data/prefetch.h"
#include "experiments/vision/data/augmentation.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// A batch of images and labels in host memory.
struct HostBatch {
  std::vector<float> images;         // [B, channels, height, width], normalized
  std::vector<std::int64_t> labels;  // [B]
  // The weight of labels[i] for image i. If images are mixed (mixup, CutMix), the rest of the weight, 1 - share,
  // belongs to labels[B - 1 - i].
  double share = 1;
  std::int64_t first = 0;  // position of the first sample in the order of the epoch, or in the set
  std::int64_t epoch = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }  // the number of images
};

// The settings of a BatchLoader.
struct LoaderOptions {
  std::int64_t batch = 64;
  std::uint64_t seed = 0;
  Augmentation augment = {};
  // The number of threads that prepare the images of a batch. More than one thread helps if images are read from files.
  std::int64_t workers = 1;
  std::int64_t start_step = 0;  // number of the first batch, counted from the start of the training
};

// The order of the samples in an epoch: a permutation of 0 ... count - 1 that depends only on seed and epoch.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

// An endless sequence of training batches, the same for any number of workers. With n = set size / batch (rounded
// down), batch k of the training is batch k % n of epoch k / n. An epoch leaves out the samples after its n-th batch.
// If images are repeated, the copies of the first samples fill the epoch, and the epoch leaves out the other samples. A
// background thread prepares the next two batches.
class BatchLoader {
 public:
  // `set` must outlive the loader. Throws Error if the set is empty or smaller than a batch, if the set and the
  // normalization have different numbers of channels, or if an option is out of range.
  BatchLoader(const ImageSet& set, Normalization normalization, LoaderOptions options);
  BatchLoader(ImageSet&&, Normalization, LoaderOptions) = delete;

  // Returns the next batch. If an image file cannot be read, next() throws the Error of the reader.
  HostBatch next() { return ahead_.next(); }

 private:
  Prefetch<HostBatch> ahead_;
};

// The images first ... first + count - 1 of the set, in order. Throws Error if the set has fewer images.
HostBatch evaluation_batch(const ImageSet& set, const Normalization& normalization, std::int64_t first,
                           std::int64_t count, std::int64_t workers = 1);

// The number of threads for loading the images of a set: num_threads() for images in files, and 1 for images in memory,
// because an image in memory is loaded faster than a thread starts.
std::int64_t loading_threads(const ImageSet& set);
// Copies a batch to the default device.
Batch to_tensors(const HostBatch& batch, const ImageSet& set);

}  // namespace plumb::vision
