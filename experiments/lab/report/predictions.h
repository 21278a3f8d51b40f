// Predictions of a classifier for images, their scores, and the files, tables and page that show them.
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

inline constexpr std::size_t top_classes = 5;  // number of likeliest classes that are kept for an image

// The prediction for one image.
struct Prediction {
  std::string image = {};                                 // a file, or a data set and a number in it
  std::int64_t number = 0;                                // index of the image in the evaluated set
  std::vector<std::pair<std::int64_t, double>> top = {};  // classes and probabilities, the likeliest first
  std::optional<std::int64_t> label = {};
  std::optional<double> loss = {};  // cross-entropy in nats, if the image has a label
  std::string picture = {};         // file of the picture, if one was drawn

  // The likeliest class.
  std::int64_t first() const { return top.front().first; }
};

// The prediction from the logits of one image, one logit per class. Throws Error if a logit is not finite.
Prediction prediction_of(std::span<const double> logits, std::optional<std::int64_t> label, std::string image,
                         std::int64_t number);

// The scores of predictions for images that have labels.
struct Scores {
  struct Count {
    // Numbers of images: all, those whose likeliest class is the label, and those whose label is a top class.
    std::int64_t images = 0, right = 0, among = 0;
    double loss = 0;  // mean

    // The shares of images whose likeliest class is the label, and whose label is a top class.
    double accuracy() const { return static_cast<double>(right) / static_cast<double>(images); }
    double accuracy_5() const { return static_cast<double>(among) / static_cast<double>(images); }
  };
  Count all;
  std::map<std::int64_t, Count> by_class;  // for classes that have images
  // The number of images for each pair of a label and a likeliest class; pairs without images are left out.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion;

  std::vector<std::int64_t> classes() const;  // all labels and likeliest classes, ascending
  // The number of images with this label and this likeliest class.
  std::int64_t confused(std::int64_t label, std::int64_t predicted) const;
};
Scores scores_of(const std::vector<Prediction>& predictions);

// Chooses at most `most` predictions to draw, and returns their indices, ascending. The classes take turns, each with
// its images in order. If there are more than `most` classes, evenly spaced classes have one image each. Images without
// labels form one class, the last.
std::vector<std::size_t> spread_over_classes(const std::vector<Prediction>& predictions, std::size_t most);

// The model and the data of an evaluation, as the outputs below describe them.
struct EvaluationFacts {
  std::string weights = {}, network = {};  // file of the weights; "ViT, 2 blocks, ..."
  std::string data = {};                   // "images/val", "glyphs: the published test set"
  bool in_files = false;                   // images are files, so each has its lines on stdout
  std::int64_t classes = 0;
  std::vector<std::string> names = {};  // of the classes; empty if they are unknown
};

// Text for a terminal: the likeliest classes of images in files, then the scores with a table by class.
std::string predictions_text(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);
// JSON with an array of predictions, one object per image.
std::string predictions_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);
// JSON with one object of all scores.
std::string scores_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);

// The texts of CSV files by file name: images.csv and, if images have labels, scores.csv, classes.csv and
// confusion.csv. confusion.csv counts images, with a row for each true class and a column for each predicted class that
// occurs.
std::map<std::string, std::string> predictions_csv(const EvaluationFacts& facts,
                                                   const std::vector<Prediction>& predictions);

// The page for images with labels: scores, a table by class, the confusion matrix (for more than 20 classes a table of
// the most confused pairs), and pictures.
Report predictions_report(const EvaluationFacts& facts, const std::vector<Prediction>& predictions,
                          const std::vector<Picture>& pictures);

// The title of the picture of an image: "two: predicted as five, 62.0 %".
std::string prediction_title(const EvaluationFacts& facts, const Prediction& prediction);

}  // namespace plumb::lab
