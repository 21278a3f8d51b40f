#include "experiments/vision/options/image_options.h"

#include "experiments/lab/cli/cli.h"
#include "experiments/vision/data/open_data.h"

namespace plumb::vision {

void ImageOptions::declare(Cli& cli) {
  cli.section("Training");
  cli.option("--data", &data, "Data set").one_of("data set", data_set_names()).scope(Scope::run);
  cli.option("--data-dir", &data_dir, "Folder with the files of the data set").path("DIR").scope(Scope::speed);
  cli.option("--image-folder", &image_folder,
             "Folder of PNG or JPEG images by class, in DIR/train/CLASS and DIR/val/CLASS, or in DIR/CLASS; short for "
             "--data image-folder --data-dir DIR")
      .path("DIR")
      .scope(Scope::speed);
  cli.option("--image-size", &image_size,
             "Side in pixels to which the images of an image folder are resized; native: the shorter side of the first "
             "training image")
      .at_least(1)
      .at_most(4096)
      .or_word("native")
      .scope(Scope::run);
  cli.option("--image-crop", &image_crop,
             "Share of the shorter side that the centre crop of an evaluated image keeps, in an image folder")
      .at_least(0.05)
      .at_most(1)
      .scope(Scope::run);
  cli.option("--normalization", &normalization,
             "Mean and deviation that normalize the pixels (data: those of the training images; imagenet: those of "
             "ImageNet, the default for an image folder; half: 0.5 and 0.5)")
      .one_of("normalization")
      .scope(Scope::run);
  cli.option("--train-images", &train_images,
             "Number of training images, drawn so that each class keeps its share; 0: all")
      .at_least(0)
      .scope(Scope::run);
  cli.option("--validation-split", &validation_split,
             "Share of the training images of each class to validate on, so that the test set stays unseen; 0: "
             "validate on the published test set")
      .at_least(0)
      .below(1)
      .scope(Scope::run);
  cli.option("--eval-images", &eval_images,
             "Number of validation images, drawn so that each class keeps its share; 0: all")
      .at_least(0);
  cli.rule([this, &cli] {
    // A configuration file has data, data_dir and image_folder. The command line overrides these values.
    if (cli.typed("--image-folder") && !image_folder.empty()) {
      usage_check(!cli.typed("--data") || data == "image-folder",
                  "--image-folder selects the data set; leave out --data {}", data);
      usage_check(!cli.typed("--data-dir"), "--image-folder and --data-dir exclude each other; give only one");
      data = "image-folder", data_dir = image_folder;
    } else {
      image_folder = data == "image-folder" ? data_dir : "";
    }
    const bool in_files = data == "image-folder";
    for (const char* option : {"--image-size", "--image-crop"})
      usage_check(in_files || !cli.typed(option),
                  "{} applies only to an image folder; give --image-folder, or leave it out", option);
    if (in_files && normalization == NormalizationKind::data && !cli.given("--normalization"))
      normalization = NormalizationKind::imagenet;
  });
}

}  // namespace plumb::vision
