// The command-line options for the augmentation of training images: a kind (none, light or deit) and single settings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/vision/data/augmentation.h"
#include "experiments/vision/data/image_set.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The values of --augment. light: padding, crops and flips (light_augmentation()). deit: the augmentation with which
// DeiT and CaiT are trained (deit_augmentation()).
enum class AugmentKind { none, light, deit };
constexpr auto names_of(AugmentKind) { return std::array{"none", "light", "deit"}; }

// Whether each image is mirrored with probability 1/2. augment: as the value of --augment says, but never for a data
// set in which a mirrored image belongs to another class.
enum class FlipChoice { augment, on, off };
constexpr auto names_of(FlipChoice) { return std::array{"augment", "on", "off"}; }

// The values of the augmentation options.
struct AugmentOptions {
  AugmentKind augment = AugmentKind::none;
  FlipChoice flip = FlipChoice::augment;
  // If a setting has no value, the value of --augment decides the setting.
  std::optional<std::int64_t> crop_padding, rand_augment, repeats;
  std::optional<double> crop_scale, magnitude, erase, mixup, cutmix, label_smoothing;

  // Declares the options in the section Augmentation.
  void declare(Cli& cli);
  // The augmentation of a data set named `data` for batches of size `batch`. The function uses only the sizes of
  // `images`. Throws UsageError if an option does not suit the images or the batch.
  Augmentation make(const std::string& data, const ImageSet& images, std::int64_t batch) const;
  double smoothing() const;  // the value of --label-smoothing, or else of --augment
  bool any() const;          // whether any augmentation is on
  // A text for reports, such as "crops after padding by 4, flips, RandAugment (2 operations, magnitude 9 ± 0.5), ..."
  // or "none".
  std::string describe(const Augmentation& a) const;
};

}  // namespace plumb::vision
