#include "experiments/vision/options/augment_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/vision/data/open_data.h"

namespace plumb::vision {

void AugmentOptions::declare(Cli& cli) {
  cli.section("Augmentation");
  const std::string as = " (augment: as set by --augment)";
  const auto option = [&](const char* name, auto* value, const char* help) -> CliOption& {
    return cli.option(name, value, help + as).or_word("augment");
  };
  cli.option("--augment", &augment,
             "Augmentation of training images (light: crops and flips; deit: that of DeiT and CaiT)")
      .one_of("augmentation");
  cli.option("--flip", &flip, "Mirror half of the training images, left to right" + as).one_of("choice");
  option("--crop-padding", &crop_padding, "Largest random shift of an image in each direction, in pixels").at_least(0);
  option("--crop-scale", &crop_scale,
         "Smallest share of an image's area that a resized crop takes; replaces --crop-padding; 1: no crops")
      .above(0)
      .at_most(1);
  option("--rand-augment", &rand_augment, "Number of RandAugment operations per image").at_least(0).at_most(16);
  option("--rand-augment-magnitude", &magnitude, "Strength of the RandAugment operations, 0 to 10")
      .at_least(0)
      .at_most(10);
  option("--random-erasing", &erase, "Probability that a rectangle of an image is replaced by noise")
      .at_least(0)
      .at_most(1);
  option("--mixup", &mixup, "Alpha of mixup; 0: no mixup").at_least(0).at_most(100);
  option("--cutmix", &cutmix, "Alpha of CutMix; 0: no CutMix; with mixup and CutMix, each batch uses one of them")
      .at_least(0)
      .at_most(100);
  option("--repeated-augmentation", &repeats, "Number of copies of each image that follow each other in an epoch")
      .at_least(1)
      .at_most(1024);
  option("--label-smoothing", &label_smoothing, "Share of the target that is spread evenly over all classes")
      .at_least(0)
      .below(1);
}

Augmentation AugmentOptions::make(const std::string& data, const ImageSet& images, std::int64_t batch) const {
  const std::int64_t side = std::min(images.height, images.width);
  Augmentation a = augment == AugmentKind::deit    ? deit_augmentation(side)
                   : augment == AugmentKind::light ? light_augmentation()
                                                   : Augmentation();
  a.flip = flip == FlipChoice::augment ? a.flip && mirrors_keep_class(data) : flip == FlipChoice::on;
  if (crop_padding) a.crop_padding = *crop_padding;
  if (crop_scale) a.crop_scale = *crop_scale;
  if (crop_scale && a.crop_scale < 1 && !crop_padding) a.crop_padding = 0;
  if (crop_padding && a.crop_padding > 0 && !crop_scale) a.crop_scale = 1;
  if (rand_augment) a.rand_augment.operations = *rand_augment;
  if (magnitude) a.rand_augment.magnitude = *magnitude;
  if (erase) a.erase = *erase;
  if (mixup) a.mixup = *mixup;
  if (cutmix) a.cutmix = *cutmix;
  if (repeats) a.repeats = *repeats;
  usage_check(!a.flip || mirrors_keep_class(data),
              "--flip on does not suit {}: a mirrored image belongs to another class; use --flip off", data);
  usage_check(a.crop_padding <= side, "--crop-padding {} is larger than the image side {}", a.crop_padding, side);
  usage_check(a.crop_padding == 0 || a.crop_scale == 1,
              "--crop-padding and --crop-scale exclude each other; give only one");
  usage_check(a.repeats <= batch, "--repeated-augmentation {} is larger than --batch {}", a.repeats, batch);
  usage_check(a.rand_augment.operations == 0 || images.channels == 1 || images.channels == 3,
              "--rand-augment needs grey or colour images (1 or 3 channels), got {} channels", images.channels);
  return a;
}

bool AugmentOptions::any() const {
  return augment != AugmentKind::none || flip == FlipChoice::on || crop_padding.value_or(0) > 0 ||
         crop_scale.value_or(1) < 1 || rand_augment.value_or(0) > 0 || erase.value_or(0) > 0 || mixup.value_or(0) > 0 ||
         cutmix.value_or(0) > 0 || smoothing() > 0;
}

double AugmentOptions::smoothing() const { return label_smoothing.value_or(augment == AugmentKind::deit ? 0.1 : 0); }

std::string AugmentOptions::describe(const Augmentation& a) const {
  std::vector<std::string> parts;
  if (a.crop_scale < 1) parts.push_back(fmt::format("resized crops of {:g} of the area or more", a.crop_scale));
  if (a.crop_padding > 0) parts.push_back(fmt::format("crops after padding by {}", a.crop_padding));
  if (a.flip) parts.emplace_back("flips");
  if (a.rand_augment.operations > 0)
    parts.push_back(fmt::format("RandAugment ({} operations, magnitude {:g} ± {:g})", a.rand_augment.operations,
                                a.rand_augment.magnitude, a.rand_augment.deviation));
  if (a.erase > 0) parts.push_back(fmt::format("random erasing {:g}", a.erase));
  if (a.mixup > 0) parts.push_back(fmt::format("mixup {:g}", a.mixup));
  if (a.cutmix > 0) parts.push_back(fmt::format("cutmix {:g}", a.cutmix));
  if (a.repeats > 1) parts.push_back(fmt::format("each image {} times in a row", a.repeats));
  if (smoothing() > 0) parts.push_back(fmt::format("labels smoothed by {:g}", smoothing()));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace plumb::vision
