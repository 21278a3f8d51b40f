// Images with boxes around objects, in the file format of COCO (Lin et al. 2014; cocodataset.org, "Data format").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/vision/data/lab.h"
#include "nn/detection/boxes.h"

namespace plumb::vision {

// A box in pixels of its image: the corner at the upper left, and the size. The pixels are those that the file stores,
// as for pycocotools and torchvision: an EXIF orientation turns neither pixels nor boxes.
struct CocoBox {
  double x = 0, y = 0, width = 0, height = 0;
  double area() const { return width * height; }                     // in pixels
  nn::Box corners() const { return {x, y, x + width, y + height}; }  // the same box by its corners
};

// An image of a data set.
struct CocoImage {
  std::int64_t id = 0;
  std::string file = {};  // relative to the folder of the images
  std::int64_t width = 0, height = 0;
};

// A class of objects.
struct CocoCategory {
  std::int64_t id = 0;
  std::string name = {};
};

// An object in an image.
struct CocoAnnotation {
  std::int64_t id = 0, image = 0, category = 0;  // `image` and `category` are ids
  CocoBox box = {};
  // The area of the object in pixels, which decides whether the object is small, medium or large. Files state the area
  // of the outline of the object; without one, the area is that of the box.
  double area = 0;
  bool crowd = false;  // whether the box surrounds a group of objects: such a box is no target of training
};

// The content of a file of annotations.
struct Coco {
  std::vector<CocoImage> images = {};
  std::vector<CocoCategory> categories = {};
  std::vector<CocoAnnotation> annotations = {};
};

// A box that a detector predicts.
struct CocoDetection {
  std::int64_t image = 0, category = 0;  // ids
  CocoBox box = {};
  double score = 0;
};

// Reads a file of annotations and checks the whole file. Throws Error if the file cannot be read, is no JSON, or has a
// fault. The message has a line for each of the first 20 faults, with the ids of the image and the annotation, and the
// number of the others. Faults are: a list or field that is missing or has another type, an id that occurs twice, an
// image or category that no entry of the file describes, an image of more than most_pixels (image_file.h), a box with a
// negative side or that leaves its image by more than half a pixel, and a negative area. Boxes without width or height
// are no faults, because COCO's own files have some. The memory is in proportion to the file.
Coco read_coco(const std::string& path);

// Reads a results file: a list of {image_id, category_id, bbox, score}. Throws Error as read_coco() does; faults are
// entries with fields that are missing or have another type.
std::vector<CocoDetection> read_coco_detections(const std::string& path);

// Returns the content as the text of a file that read_coco() and other programs read.
std::string coco_json(const Coco& content);
// Returns detections as the text of a results file: a list of {image_id, category_id, bbox, score}.
std::string coco_json(const std::vector<CocoDetection>& detections);

}  // namespace plumb::vision
