// Sets of labelled images and their normalization. The images are in memory, or in files that are read when an image is
// used.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/vision/data/image_ops.h"

namespace plumb::vision {

// Labelled images of one size. The images are either in `pixels` or in `files`.
struct ImageSet {
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels = {};  // [N, channels, height, width]; empty if the images are in files
  std::vector<std::int32_t> labels = {};  // [N], each in [0, classes)
  // The paths [N] of PNG or JPEG files of any size (image_folder.h). fitted() resizes their images to height x width.
  std::vector<std::string> files = {};
  double crop = 1;                            // for images in files: the share of the shorter side that fitted() keeps
  std::vector<std::string> class_names = {};  // indexed by label; empty if unknown

  bool in_files() const { return !files.empty(); }  // whether the images are read from `files`
  // The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_bytes() const { return channels * height * width; }
  // The bytes of image `index`, for a set in memory.
  const std::uint8_t* image(std::int64_t index) const { return pixels.data() + index * image_bytes(); }
};

// Image `index` without changes. An image in a file has the size of the file. Throws Error if the file cannot be read.
Pixels original(const ImageSet& set, std::int64_t index);
// Image `index` as used for evaluation, [channels, height, width] of the set. An image in memory is unchanged. An image
// in a file is first resized (bicubic) so that its shorter side is 1 / crop times the side of the set. Then the centre
// of the resized image is cut out, as in timm. Throws Error if the file cannot be read or if the lengths of the two
// sides are too different.
Pixels fitted(const ImageSet& set, std::int64_t index);
// Resizes and cuts an image as fitted(set, index) does, for an image that is in no set. Throws Error unless 0.01 <=
// crop <= 1.
Pixels fitted(const Pixels& image, std::int64_t height, std::int64_t width, double crop);

// A data set with training, validation and test images.
struct ImageData {
  std::string name;
  ImageSet train, validation;                            // have the same image size and the same classes
  std::string validation_is = "the published test set";  // the source of the validation images, for reports
  // The published test set, if the validation images are a part of the training images (split.h). `test` is used
  // neither for training nor for validation.
  ImageSet test = {};
};

// The constants of normalization. A byte p of channel c becomes (p / 255 - mean[c]) / std[c].
struct Normalization {
  std::vector<float> mean, std;  // [channels], for pixels scaled to 0..1
};

// The mean and standard deviation of the pixels of a set, with the same bits on every machine. Each image in a file is
// read once and fitted. A constant channel gets the standard deviation 1, so that the normalized channel is 0. Throws
// Error if the set is empty.
Normalization normalization_of(const ImageSet& set);
// The values of --normalization. The kind `imagenet` needs images with three channels.
enum class NormalizationKind {
  data,      // the mean and deviation of the pixels of the data set
  imagenet,  // the mean and deviation of ImageNet, as for CaiT and DeiT in timm
  half       // mean 0.5 and deviation 0.5, as for the other ViTs of timm
};
constexpr auto names_of(NormalizationKind) { return std::array{"data", "imagenet", "half"}; }
// The normalization of the given kind. Throws Error if the set is empty or if the kind needs another number of
// channels.
Normalization normalization_of(const ImageSet& set, NormalizationKind kind);

// Pads the images of a set in memory with zero bytes on all sides to at least side x side. If the padding is odd, the
// bottom and the right side get the additional pixel. Throws Error if the images are in files.
ImageSet pad_to(ImageSet set, std::int64_t side);

// Throws Error unless the set has an image, every label is in range, and the number of bytes or files matches the
// sizes. The message begins with `who`, the name of the operation.
void check_consistent(const ImageSet& set, const std::string& who);

}  // namespace plumb::vision
