// A study that searches for the edges of the settings at which small ViTs train.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "experiments/lab/study/edge_search.h"
#include "experiments/lab/train/trained_at.h"
#include "experiments/vision/study.h"

namespace plumb::vision {

// The study has the axis of methods; the class that derives from it has the axis of the search and the other axes.
struct EdgeStudy : Study {
  using Study::Study;

  const Axis<std::string> gate = methods({"post", "pre", "rezero", "fixup", "layerscale", "deepnorm"});
  TrainedAt trained;

  // Declares --trained-at, sets the defaults of a search, and adds the search and its section.
  void search_edges(std::function<EdgeSearch()> settings, std::function<Section(const StudyResults&)> section) {
    trained.declare(cli(), [this] { return augmentation().any(); });
    defaults({.steps = 300, .seeds = {0, 1, 2}, .stop_hopeless = true});
    network().dim = 32;
    network().recipe = RecipeKind::paper;
    // All methods train fast with Xavier weights, so a failure is not just slow training.
    network().weight_init = WeightInit::xavier;
    search(edge_search(std::move(settings)));
    output(std::move(section));
    columns({"trained", train_loss, val_accuracy, "diverged_at"});
  }
  void train(Trial& trial) const {
    Study::train(trial);
    trained.measure(trial);
  }
};

}  // namespace plumb::vision
