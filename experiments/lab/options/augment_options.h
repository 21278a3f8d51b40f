// The command-line options for the augmentation of training images: a kind (none, light or deit) and single settings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/lab/data/augment.h"

namespace plumb::lab {

class Cli;

// light: padding, crops and flips. deit: the augmentation that DeiT and CaiT train with (deit_augmentation).
enum class AugmentKind { none, light, deit };
constexpr auto names_of(AugmentKind) { return std::array{"none", "light", "deit"}; }

// Whether half of the images are mirrored. augment: as AugmentKind says, but never for a data set in which a mirrored
// image belongs to another class.
enum class FlipChoice { augment, on, off };
constexpr auto names_of(FlipChoice) { return std::array{"augment", "on", "off"}; }

// The values of the augmentation options.
struct AugmentOptions {
  AugmentKind augment = AugmentKind::none;
  FlipChoice flip = FlipChoice::augment;
  // A setting without a value has the value of the kind `augment`.
  std::optional<std::int64_t> crop_padding, rand_augment, repeats;
  std::optional<double> crop_scale, magnitude, erase, mixup, cutmix, label_smoothing;

  // Declares the options in the section Augmentation, except --label-smoothing.
  void declare(Cli& cli);
  // Declares --label-smoothing. It is separate because some programs have a different option for label smoothing.
  void declare_smoothing(Cli& cli);
  // The augmentation of a data set named `data` for batches of size `batch`; uses only the sizes of `images`. Throws
  // UsageError if an option does not suit the images or the batch.
  Augmentation make(const std::string& data, const ImageSet& images, std::int64_t batch) const;
  double smoothing() const;  // the label smoothing: --label-smoothing or that of the kind
  bool any() const;          // whether the options ask for any augmentation
  // Text for reports: "crops after padding by 4, flips, RandAugment (2 operations, magnitude 9 ± 0.5), ..." or "none".
  std::string describe(const Augmentation& a) const;
};

}  // namespace plumb::lab
