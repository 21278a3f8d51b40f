// Batches of normalised images: in a random order for training, in the set's order for evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/data/augment.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/data/prefetch.h"

namespace plumb::lab {

struct HostBatch {
  std::vector<float> images;         // [B, channels, height, width], normalised
  std::vector<std::int64_t> labels;  // [B]
  // Of a mixed batch (mixup, cutmix): the share that image i has of what `labels` say; the rest is of the label of
  // image B - 1 - i.
  double share = 1;
  std::int64_t first = 0;  // position of its first sample in the epoch's order, or in the set
  std::int64_t epoch = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

struct LoaderOptions {
  std::int64_t batch = 64;
  std::uint64_t seed = 0;
  Augmentation augment = {};
  std::int64_t workers =
      1;  // threads that prepare the images of a batch: worth their start where these are read from files
  std::int64_t start_step = 0;  // the first batch is the one that this many next() would have passed
};

// The order of an epoch: a permutation of 0 ... count - 1 that depends on (seed, epoch) only.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint32_t epoch);

// Training batches without end, the same for any number of workers. Batch k of the run is batch k % n of epoch k / n,
// where n = set size / batch; what an epoch has beyond n batches is left out of it, and, with repeats, so are the
// images that others' copies take the places of. A thread of its own prepares the next two batches.
class BatchLoader {
 public:
  // `set` must outlive the loader. Error when the set is empty, smaller than a batch, or not of the normalization's
  // channels.
  BatchLoader(const ImageSet& set, Normalization normalization, LoaderOptions options);
  BatchLoader(ImageSet&&, Normalization, LoaderOptions) = delete;

  HostBatch next() { return ahead_.next(); }

 private:
  Prefetch<HostBatch> ahead_;
};

// Images first ... first + count - 1 of the set, in order. Error when the set has not so many.
HostBatch evaluation_batch(const ImageSet& set, const Normalization& normalization, std::int64_t first,
                           std::int64_t count, std::int64_t workers = 1);

// How many threads should load images of a set: those in memory are ready sooner than a thread starts.
std::int64_t loading_threads(const ImageSet& set);

}  // namespace plumb::lab
