// Labelled images in memory, as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::lab {

struct ImageSet {
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels = {};  // [N, channels, height, width]
  std::vector<std::int32_t> labels = {};  // [N], each in [0, classes)

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_bytes() const { return channels * height * width; }
  const std::uint8_t* image(std::int64_t index) const { return pixels.data() + index * image_bytes(); }
};

struct ImageData {
  std::string name;
  ImageSet train, validation;  // of the same image shape and classes
  std::string validation_is = "the published test set";
  ImageSet test = {};  // where validation is a part of the training images (split.h): what nothing has looked at yet
};

// What turns a byte p of channel c into (p / 255 - mean[c]) / std[c].
struct Normalization {
  std::vector<float> mean, std;  // [channels], of pixels scaled to 0..1
};

// The statistics of a set's own pixels, the same bits on every machine. A channel that is constant gets std 1, so that it becomes 0.
// Error when the set is empty.
Normalization normalization_of(const ImageSet& set);

// Images lower or narrower than `side` get a border of zero bytes that centres them (an odd remainder goes to the bottom and the right).
ImageSet pad_to(ImageSet set, std::int64_t side);

// Error unless there is an image, every label is in range and the pixels are as many as the sizes say.
void check_consistent(const ImageSet& set, const std::string& who);

}  // namespace plumb::lab
