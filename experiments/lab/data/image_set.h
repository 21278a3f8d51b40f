// Sets of labelled images, in memory or in files that are read when they are used, and their normalization.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"

namespace plumb::lab {

// Labelled images of one size. The images are either in `pixels` or in `files`.
struct ImageSet {
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels = {};  // [N, channels, height, width]; empty if the images are in files
  std::vector<std::int32_t> labels = {};  // [N], each in [0, classes)
  // Paths [N] of PNG or JPEG files of any size (image_folder.h), which fitted() resizes to height x width.
  std::vector<std::string> files = {};
  double crop = 1;                            // for files: the share of the shorter side that fitted() keeps
  std::vector<std::string> class_names = {};  // by label; empty if unknown

  bool in_files() const { return !files.empty(); }  // whether the images are read from `files`
  // The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_bytes() const { return channels * height * width; }
  // The bytes of an image of a set in memory.
  const std::uint8_t* image(std::int64_t index) const { return pixels.data() + index * image_bytes(); }
};

// Image `index` without changes; an image in a file has the size of the file. Throws Error if the file cannot be read.
Pixels original(const ImageSet& set, std::int64_t index);
// Image `index` as used for evaluation, [channels, height, width] of the set. An image in memory is unchanged. An image
// in a file is resized (bicubic) so that `crop` of its shorter side is as long as the side of the set, and then its
// centre is cut out, as in timm. Throws Error if the file cannot be read or its sides are too different.
Pixels fitted(const ImageSet& set, std::int64_t index);
// Resizes and cuts an image in the same way, for images outside a set. Throws Error unless 0.01 <= crop <= 1.
Pixels fitted(const Pixels& image, std::int64_t height, std::int64_t width, double crop);

// A data set.
struct ImageData {
  std::string name;
  ImageSet train, validation;                            // with the same image size and classes
  std::string validation_is = "the published test set";  // what the validation images are, for reports
  // If the validation images are a part of the training images (split.h): the published test set, which stays unseen.
  ImageSet test = {};
};

// Normalizes a byte p of channel c to (p / 255 - mean[c]) / std[c].
struct Normalization {
  std::vector<float> mean, std;  // [channels], of pixels scaled to 0..1
};

// The mean and standard deviation of the pixels of a set, with the same bits on every machine. Images in files are read
// once and fitted. A constant channel gets std 1, so that it becomes 0. Throws Error if the set is empty.
Normalization normalization_of(const ImageSet& set);
// The values of --normalization. The last two need three channels.
enum class NormalizationKind {
  data,      // mean and deviation of the pixels of the set
  imagenet,  // as for timm's CaiT and DeiT
  half       // mean 0.5 and deviation 0.5, as for timm's other ViTs
};
// The names on the command line.
constexpr auto names_of(NormalizationKind) { return std::array{"data", "imagenet", "half"}; }
// The normalization of this kind. Throws Error if the set is empty or the kind does not suit its number of channels.
Normalization normalization_of(const ImageSet& set, NormalizationKind kind);

// Pads the images of a set in memory with zero bytes to at least side x side, centred. An odd remainder goes to the
// bottom and to the right. Throws Error if the images are in files.
ImageSet pad_to(ImageSet set, std::int64_t side);

// Throws Error, with `who` as the name of the operation, unless the set has an image, every label is in range, and the
// number of bytes or files fits the sizes.
void check_consistent(const ImageSet& set, const std::string& who);

}  // namespace plumb::lab
