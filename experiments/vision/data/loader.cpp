#include "experiments/vision/data/loader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "autograd/ops.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/host_values.h"
#include "core/random.h"
#include "experiments/vision/data/augment.h"

namespace plumb::vision {
namespace {

// Converts bytes to normalized floats with one table for each channel.
class Normalizer {
 public:
  Normalizer(const ImageSet& set, const Normalization& normalization) : plane_(set.height * set.width) {
    const auto channels = static_cast<std::size_t>(set.channels);
    check(normalization.mean.size() == channels && normalization.std.size() == channels,
          "[loader] expected a normalization for {} channels, got {} means and {} deviations", channels,
          normalization.mean.size(), normalization.std.size());
    tables_.resize(channels);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t v = 0; v < 256; ++v)
        tables_[c][v] = (static_cast<float>(v) / 255.0f - normalization.mean[c]) / normalization.std[c];
  }

  // Converts one image [channels, height, width].
  void apply(const std::uint8_t* pixels, float* out) const {
    for (const std::array<float, 256>& table : tables_)
      for (std::int64_t i = 0; i < plane_; ++i) *out++ = table[*pixels++];
  }

 private:
  std::int64_t plane_;
  std::vector<std::array<float, 256>> tables_;
};

void write_image(const Normalizer& normalizer, const ImageSet& set, std::int64_t index, float* out) {
  if (set.in_files())
    normalizer.apply(fitted(set, index).bytes.data(), out);
  else
    normalizer.apply(set.image(index), out);
}

// Calls f(0) ... f(count - 1) in `workers` threads. Rethrows the first exception of a call.
template <class F>
void in_parallel(std::int64_t workers, std::int64_t count, const F& f) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::int64_t i; (i = next++) < count;) f(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::int64_t i = 1; i < std::min(workers, count); ++i) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

HostBatch empty_batch(const ImageSet& set, std::int64_t count, std::int64_t first, std::int64_t epoch) {
  HostBatch batch;
  batch.images.resize(static_cast<std::size_t>(count * set.image_bytes()));
  batch.first = first;
  batch.epoch = epoch;
  return batch;
}

// Prepares the training batches in sequence.
class TrainingBatches {
 public:
  TrainingBatches(const ImageSet& set, const Normalization& normalization, const LoaderOptions& options)
      : set_(set), normalizer_(set, normalization), options_(options), step_(options.start_step) {
    check_consistent(set, "loader");
    check(options.batch > 0, "[loader] expected a batch of at least one image, got {}", options.batch);
    check(options.batch <= set.size(),
          "[loader] expected a batch of at most {} images, the size of the training set, got {}", set.size(),
          options.batch);
    check(options.start_step >= 0, "[loader] expected a start step of at least 0, got {}", options.start_step);
    check(options.augment.crop_padding >= 0 && options.augment.crop_padding <= std::min(set.height, set.width),
          "[loader] expected a crop padding in 0..{}, got {}", std::min(set.height, set.width),
          options.augment.crop_padding);
    check(options.augment.repeats >= 1 && options.augment.repeats <= options.batch,
          "[loader] expected 1 to {} repeats of an image, got {}", options.batch, options.augment.repeats);
    for (const float mean : normalization.mean)
      fill_.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(255 * mean), 0L, 255L)));
  }

  HostBatch next() {
    const std::int64_t batches = set_.size() / options_.batch, epoch = step_ / batches,
                       first = step_ % batches * options_.batch;
    check(epoch <= std::numeric_limits<std::uint32_t>::max(), "[loader] expected fewer than 2^32 epochs, got step {}",
          step_);
    const auto epoch32 = static_cast<std::uint32_t>(epoch);
    if (epoch != order_epoch_) {
      order_ = epoch_order(set_.size(), options_.seed, epoch32);
      order_epoch_ = epoch;
    }
    HostBatch batch = empty_batch(set_, options_.batch, first, epoch);
    const Augmentation& augment = options_.augment;
    batch.labels.resize(static_cast<std::size_t>(options_.batch));
    in_parallel(options_.workers, options_.batch, [&](std::int64_t i) {
      const std::int64_t place = first + i, sample = order_[static_cast<std::size_t>(place / augment.repeats)];
      const Occurrence what{options_.seed, epoch32, sample, place % augment.repeats};
      float* image = batch.images.data() + i * set_.image_bytes();
      if (augment.places() || augment.rand_augment.operations > 0)
        normalizer_.apply(augmented(set_, what, augment, fill_).bytes.data(), image);
      else
        write_image(normalizer_, set_, sample, image);
      if (augment.erase > 0) erase_image(image, set_.channels, set_.height, set_.width, what, augment.erase);
      batch.labels[static_cast<std::size_t>(i)] = set_.labels[static_cast<std::size_t>(sample)];
    });
    if (augment.mixes()) {
      RandomStream stream(options_.seed, "data.mix", epoch32, first);
      batch.share = mix_batch(batch.images, options_.batch, set_.channels, set_.height, set_.width, augment, stream);
    }
    ++step_;
    return batch;
  }

 private:
  const ImageSet& set_;
  const Normalizer normalizer_;
  const LoaderOptions options_;
  std::int64_t step_, order_epoch_ = -1;
  std::vector<std::int64_t> order_;
  std::vector<std::uint8_t> fill_;  // value of uncovered pixels: the mean of each channel
};

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::uint64_t key = random_key(seed, "data.order");
  Draw draw{};
  // The Fisher-Yates shuffle. Position i uses word i of the random stream.
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (i % 4 == 0) draw = element_draw(key, epoch, Purpose::augmentation, i / 4);
    const std::uint64_t rest = order.size() - i;
    std::swap(order[i], order[i + static_cast<std::size_t>(draw[i % 4] * rest >> 32)]);
  }
  return order;
}

BatchLoader::BatchLoader(const ImageSet& set, Normalization normalization, LoaderOptions options)
    : ahead_([batches = std::make_shared<TrainingBatches>(set, normalization, options)] { return batches->next(); },
             2) {}

HostBatch evaluation_batch(const ImageSet& set, const Normalization& normalization, std::int64_t first,
                           std::int64_t count, std::int64_t workers) {
  check(first >= 0 && count > 0 && first <= set.size() && count <= set.size() - first,
        "[evaluation_batch] expected images in 0..{}, got {} images from image {} on", set.size() - 1, count, first);
  const Normalizer normalizer(set, normalization);
  HostBatch batch = empty_batch(set, count, first, 0);
  batch.labels.assign(set.labels.begin() + first, set.labels.begin() + first + count);
  in_parallel(workers, count, [&](std::int64_t i) {
    write_image(normalizer, set, first + i, batch.images.data() + i * set.image_bytes());
  });
  return batch;
}

std::int64_t loading_threads(const ImageSet& set) { return set.in_files() ? num_threads() : 1; }

Batch to_tensors(const HostBatch& batch, const ImageSet& set) {
  std::vector<std::int64_t> others;
  double mixed = 0;
  std::vector<HostValues> given{{batch.images.data(), {batch.size(), set.channels, set.height, set.width}, DType::f32},
                                {batch.labels.data(), {batch.size()}, DType::i64}};
  if (batch.share < 1) {
    others.assign(batch.labels.rbegin(), batch.labels.rend());
    given.push_back({others.data(), {batch.size()}, DType::i64});
    mixed = std::inner_product(others.begin(), others.end(), batch.labels.begin(), 0.0, std::plus<>(),
                               std::not_equal_to<>()) /
            static_cast<double>(batch.size());
  }
  const std::vector<Array> parts = arrays_from(given, defaults().device);
  return {cast(Tensor(parts[0]), defaults().dtype), Tensor(parts[1]), batch.share < 1 ? Tensor(parts[2]) : Tensor(),
          batch.share, mixed};
}

}  // namespace plumb::vision
