// Evaluates trained weights on images: the option --evaluate.
#pragma once

#include "experiments/lab/options/study_options.h"
#include "experiments/vision/programs/pretrained_weights.h"

namespace plumb::vision {

// --evaluate: predicts the classes of images with the weights. With --image-folder, the images are at or below that
// folder (below its val/, validation/ or test/ if it has train/). Otherwise the images are the validation images of
// --data. With --validation-split, the images are those that the split draws.
//
// stdout has the five likeliest classes for each image file. For images with labels, stdout also has the mean loss, the
// accuracy, and the accuracy by class. Images have labels if they come from a data set, or from folders with the names
// of classes. With --json, stdout has an array of the files, or an object of scores.
//
// The folder --out receives CSV files and attention maps of some images. For images with labels the folder also
// receives a confusion matrix, evaluation.json and report.html. Returns the exit status, which is 1 if a file cannot be
// read. Throws UsageError if the images have other classes than the weights.
int evaluate_images(PretrainedWeights& weights, const StudyOptions& run, const ImageOptions& options, const Cli& cli);

}  // namespace plumb::vision
