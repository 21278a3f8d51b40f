// What is done to training images, by name: none, light, or as DeiT and CaiT do it; and each switch by itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/lab/data/augment.h"

namespace plumb::lab {

class Cli;

enum class AugmentKind { none, light, deit };  // light: crops and flips
constexpr auto names_of(AugmentKind) { return std::array{"none", "light", "deit"}; }

enum class FlipChoice { augment, on, off };  // augment: as the kind has it, where a mirrored image is of the same class
constexpr auto names_of(FlipChoice) { return std::array{"augment", "on", "off"}; }

struct AugmentOptions {
  AugmentKind augment = AugmentKind::none;
  FlipChoice flip = FlipChoice::augment;
  // Nothing: as `augment` has it.
  std::optional<std::int64_t> crop_padding, rand_augment, repeats;
  std::optional<double> crop_scale, magnitude, erase, mixup, cutmix, label_smoothing;

  // In the section Augmentation; the labels' smoothing apart, for programs that have an option of their own.
  void declare(Cli& cli);
  void declare_smoothing(Cli& cli);
  // For images of these sizes, of the data set of that name. Throws UsageError for what does not suit them.
  Augmentation make(const std::string& data, const ImageSet& images, std::int64_t batch) const;
  double smoothing() const;
  bool any() const;  // whether anything was asked for
  // For reports: "crops after padding by 4, flips, RandAugment (2 operations, magnitude 9), ..."; "none".
  std::string describe(const Augmentation& a) const;
};

}  // namespace plumb::lab
