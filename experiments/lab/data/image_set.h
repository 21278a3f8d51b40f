// Labelled images: in memory, as bytes, or in files that are read when they are wanted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"

namespace plumb::lab {

struct ImageSet {
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::uint8_t> pixels = {};  // [N, channels, height, width]; none where there are files
  std::vector<std::int32_t> labels = {};  // [N], each in [0, classes)
  // PNG or JPEG files of any size [N] (image_folder.h); height and width are what fitted() makes of them.
  std::vector<std::string> files = {};
  double crop = 1;                            // of files: the share of the shorter side that fitted() keeps
  std::vector<std::string> class_names = {};  // by label, where they are known

  bool in_files() const { return !files.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_bytes() const { return channels * height * width; }
  const std::uint8_t* image(std::int64_t index) const {
    return pixels.data() + index * image_bytes();
  }  // of a set in memory
};

// Image `index` as it is, of the size of its file; and as evaluation sees it, [channels, height, width]: what is in
// memory as it is, a file's resized (bicubic) so that the part of its shorter side that `crop` says is as long as the
// set's, then its middle, as timm evaluates. Error as read_image has it.
Pixels original(const ImageSet& set, std::int64_t index);
Pixels fitted(const ImageSet& set, std::int64_t index);
// The same of an image that belongs to no set.
Pixels fitted(const Pixels& image, std::int64_t height, std::int64_t width, double crop);

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

// The statistics of a set's own pixels (of files: fitted, each is read once), the same bits on every machine. A channel
// that is constant gets std 1, so that it becomes 0. Error when the set is empty.
Normalization normalization_of(const ImageSet& set);
// Whose statistics a normalization has. The last two are for three channels.
enum class NormalizationKind {
  data,      // the set's own
  imagenet,  // what timm's CaiT and DeiT were trained with
  half       // (0.5, 0.5), as timm's other ViTs
};
constexpr auto names_of(NormalizationKind) { return std::array{"data", "imagenet", "half"}; }
Normalization normalization_of(const ImageSet& set, NormalizationKind kind);

// Of a set in memory. Images lower or narrower than `side` get a border of zero bytes that centres them (an odd
// remainder goes to the bottom and the right).
ImageSet pad_to(ImageSet set, std::int64_t side);

// Error unless there is an image, every label is in range and the pixels are as many as the sizes say.
void check_consistent(const ImageSet& set, const std::string& who);

}  // namespace plumb::lab
