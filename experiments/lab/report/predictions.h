// What a classifier says of images: scores against their labels, and the files, tables and page that show them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"

namespace plumb::lab {

inline constexpr std::size_t top_classes = 5;  // kept of each image

struct Prediction {
  std::string image = {};                                 // a file, or a data set and a number in it
  std::int64_t number = 0;                                // of the image in the set that is evaluated
  std::vector<std::pair<std::int64_t, double>> top = {};  // class and probability, the likeliest first
  std::optional<std::int64_t> label = {};
  std::optional<double> loss = {};  // cross-entropy in nats, of an image with a label
  std::string picture = {};         // a file, if one was drawn

  std::int64_t first() const { return top.front().first; }
};

// From the logits of one image. Throws Error if they are not finite.
Prediction prediction_of(std::span<const double> logits, std::optional<std::int64_t> label, std::string image,
                         std::int64_t number);

// Counts and means over the images that have labels.
struct Scores {
  struct Count {
    std::int64_t images = 0, right = 0,
                 among = 0;  // right: the likeliest class is the label; among: one of the top classes is
    double loss = 0;         // mean

    double accuracy() const { return static_cast<double>(right) / static_cast<double>(images); }
    double accuracy_5() const { return static_cast<double>(among) / static_cast<double>(images); }
  };
  Count all;
  std::map<std::int64_t, Count> by_class;  // of the classes that have images
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      confusion;  // (label, likeliest class) -> images; without zeros

  std::vector<std::int64_t> classes() const;  // those that are a label or a likeliest class, ascending
  std::int64_t confused(std::int64_t label, std::int64_t predicted) const;
};
Scores scores_of(const std::vector<Prediction>& predictions);

// Which predictions to draw, ascending: at most `most`, one of each class in turn, in the order of the images. Of more
// classes than `most` every n-th has one. Images without labels count as one class, the last.
std::vector<std::size_t> spread_over_classes(const std::vector<Prediction>& predictions, std::size_t most);

// What the outputs below tell of.
struct EvaluationFacts {
  std::string weights = {}, network = {};  // the file; "ViT, 2 blocks, ..."
  std::string data = {};                   // "images/val", "glyphs: the published test set"
  bool in_files = false;                   // images are files, so that each has its lines on stdout
  std::int64_t classes = 0;
  std::vector<std::string> names = {};  // of the classes; empty: not known
};

// The likeliest classes of images in files, and scores with a table by class: for a terminal.
std::string predictions_text(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);
std::string predictions_json(const EvaluationFacts& facts,
                             const std::vector<Prediction>& predictions);  // an array, an object an image
std::string scores_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);  // one object

// By the names of their files: images.csv, and of images with labels scores.csv, classes.csv and confusion.csv (a row a
// true class, a column a predicted one, in counts; of the classes that occur).
std::map<std::string, std::string> predictions_csv(const EvaluationFacts& facts,
                                                   const std::vector<Prediction>& predictions);

// The page of images with labels: scores, a table by class, the confusion matrix (of more than 20 classes the pairs
// that are confused most), pictures.
Report predictions_report(const EvaluationFacts& facts, const std::vector<Prediction>& predictions,
                          const std::vector<Picture>& pictures);

// "two: taken for five, 62.0 %": the title of an image's picture.
std::string prediction_title(const EvaluationFacts& facts, const Prediction& prediction);

}  // namespace plumb::lab
