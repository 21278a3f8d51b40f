// Predictions of a classifier for images, the scores of the predictions, and the files, tables and page that show both.
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
#include "experiments/vision/data/lab.h"

namespace plumb::vision {

inline constexpr std::size_t top_classes = 5;  // number of likeliest classes kept for an image

// The prediction for one image.
struct Prediction {
  std::string image = {};   // an image file, or the name of a data set with the number of the image
  std::int64_t number = 0;  // index of the image in the evaluated set
  std::vector<std::pair<std::int64_t, double>> top = {};  // classes and probabilities, the likeliest first
  std::optional<std::int64_t> label = {};
  std::optional<double> loss = {};  // cross-entropy in nats, if the image has a label
  std::string picture = {};         // file of the drawn picture; empty if none was drawn

  // The likeliest class.
  std::int64_t first() const { return top.front().first; }
};

// The prediction from the logits of one image, one logit per class. Throws Error if a logit is not finite.
Prediction prediction_of(std::span<const double> logits, std::optional<std::int64_t> label, std::string image,
                         std::int64_t number);

// The scores of predictions for images that have labels.
struct Scores {
  struct Count {
    // Numbers of images: `images` counts all, `right` counts those whose likeliest class is the label, and `among`
    // counts those whose label is among the likeliest classes (top_classes).
    std::int64_t images = 0, right = 0, among = 0;
    double loss = 0;  // mean cross-entropy in nats

    // accuracy() is the share of images whose likeliest class is the label; accuracy_5() is the share whose label is
    // among the likeliest classes.
    double accuracy() const { return static_cast<double>(right) / static_cast<double>(images); }
    double accuracy_5() const { return static_cast<double>(among) / static_cast<double>(images); }
  };
  Count all;
  std::map<std::int64_t, Count> by_class;  // key: class; only classes that have images
  // The number of images for each pair of a label and a likeliest class. Pairs without images are left out.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion;

  std::vector<std::int64_t> classes() const;  // all labels and likeliest classes, ascending
  // The number of images with this label and this likeliest class.
  std::int64_t confused(std::int64_t label, std::int64_t predicted) const;
};
Scores scores_of(const std::vector<Prediction>& predictions);

// Chooses at most `most` predictions whose images are drawn. Returns the indices of the predictions in ascending order.
// The classes take turns, each with its images in order. If there are more than `most` classes, evenly spaced classes
// have one image each. Images without labels form one class, which comes last.
std::vector<std::size_t> spread_over_classes(const std::vector<Prediction>& predictions, std::size_t most);

// The model and the data of an evaluation, for the texts and files of the functions below.
struct EvaluationFacts {
  std::string weights = {}, network = {};  // file of the weights; network in words, such as "ViT, 2 blocks, ..."
  std::string data = {};                   // for example "images/val" or "glyphs: the published test set"
  bool in_files = false;                   // whether images are files; each file then has its own lines on stdout
  std::int64_t classes = 0;
  std::vector<std::string> names = {};  // names of the classes; empty if unknown
};

// The text for a terminal. The likeliest classes of each image file come first, then the scores with a table by class.
std::string predictions_text(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);
// The JSON of predictions: an array with one object per image.
std::string predictions_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);
// The JSON of scores: one object.
std::string scores_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions);

// The texts of the CSV files, with the file name as key. The files are images.csv and, if images have labels,
// scores.csv, classes.csv and confusion.csv. confusion.csv has numbers of images, with a row for each true class and a
// column for each class that was predicted.
std::map<std::string, std::string> predictions_csv(const EvaluationFacts& facts,
                                                   const std::vector<Prediction>& predictions);

// The page for images with labels. The page has scores, a table by class, the confusion matrix, and pictures. For more
// than 20 classes a table of the most confused pairs replaces the confusion matrix.
Report predictions_report(const EvaluationFacts& facts, const std::vector<Prediction>& predictions,
                          const std::vector<Picture>& pictures);

// The title of the picture of an image, such as "two: predicted as five, 62.0 %".
std::string prediction_title(const EvaluationFacts& facts, const Prediction& prediction);

}  // namespace plumb::vision
