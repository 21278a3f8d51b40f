// Sets of images with boxes around objects, and batches of them. The images are in memory, or in files that are read
// when an image is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "experiments/vision/data/coco.h"
#include "experiments/vision/data/image_set.h"
#include "nn/detection/boxes.h"

namespace plumb::vision {

// Images and their objects. Image i is truth.images[i]. Class c of a network is truth.categories[c].
struct DetectionSet {
  Coco truth = {};
  std::vector<Pixels> pixels = {};  // of each image, with three channels; empty if the images are in files
  std::string folder = {};          // the folder of the files
  // The longer side, in pixels, to which fitted() resizes images. 0: images are not resized.
  std::int64_t side = 0;

  bool in_files() const { return pixels.empty(); }                       // whether the images are in files
  std::int64_t size() const { return std::ssize(truth.images); }         // the number of images
  std::int64_t classes() const { return std::ssize(truth.categories); }  // the number of classes of objects
  std::string path(const CocoImage& image) const;                        // of the image's file
  std::int64_t longest_side() const;  // of all images as networks see them; 0 without images
};

// Training and validation images. Both have the same categories.
struct DetectionData {
  std::string name = {};
  DetectionSet train = {}, validation = {};
  std::string validation_is = {};  // the source of the validation images, for reports
};

// Image `index` as networks see it: resized (bicubic) so that its longer side is `side`. Throws Error if the file
// cannot be read, or if its size is not that in the file of annotations; the message has the path. The first photo with
// an EXIF orientation that its sides do not show is named on stderr.
Pixels fitted(const DetectionSet& set, std::int64_t index);
// The same for an image that is in no set.
Pixels fitted(const Pixels& image, std::int64_t side);
// The image, resized (bicubic) if its longer side has more than `most` pixels, so that it then has `most` pixels.
Pixels reduced(const Pixels& image, std::int64_t most);

// The objects of each image as targets of training: boxes in shares of the sides of the image. A crowd is no target,
// nor is a box that has no area inside the image (facebookresearch/detr, datasets/coco.py).
nn::Targets targets_of(const DetectionSet& set);

// Opens a data set in COCO's format. `annotations` is a file, and `images` the folder that the file names in it are
// relative to. Throws the errors of read_coco(), and Error if an image file does not exist (the first five are named),
// or if the file has no image or no category.
DetectionSet open_coco(const std::string& annotations, const std::string& images, std::int64_t side);

// Writes the images of a set in memory as PNG files to folder/images, and the annotations to folder/instances.json, so
// that other programs can train on the same data. Throws Error for images in files.
void write_coco(const DetectionSet& set, const std::string& folder);

// A batch in host memory.
struct HostDetectionBatch {
  Shape shape;                          // [B, 3, H, W], where H and W are the largest sides in the batch
  std::vector<float> images;            // normalized; smaller images are at the upper left, and the rest is 0
  std::vector<std::uint8_t> keep = {};  // the mask of the pixels [B, H, W]; empty if all images have the same size
  nn::Targets targets = {};
};
// A batch on the default device.
struct DetectionBatch {
  Tensor images;
  Tensor keep = {};  // of dtype u8; undefined if all images have the same size
  nn::Targets targets = {};
};

// Makes a batch of images of a set. `targets` are those of the whole set. If mirrored[i] is true, image i is mirrored
// left to right, with its boxes; an empty list mirrors none.
HostDetectionBatch host_batch_of(const DetectionSet& set, const nn::Targets& targets,
                                 const Normalization& normalization, const std::vector<std::int64_t>& indices,
                                 const std::vector<bool>& mirrored = {});
// Copies a batch to the default device.
DetectionBatch to_tensors(const HostDetectionBatch& batch);
// Both in one call.
DetectionBatch batch_of(const DetectionSet& set, const nn::Targets& targets, const Normalization& normalization,
                        const std::vector<std::int64_t>& indices, const std::vector<bool>& mirrored = {});
// A batch of one image without targets.
DetectionBatch batch_of(const Pixels& image, const Normalization& normalization);

}  // namespace plumb::vision
