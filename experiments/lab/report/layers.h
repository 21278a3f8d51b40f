// Layer statistics that trials attached (signals/layer_probe.h), for layers.csv and for figures.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/layer_probe.h"

namespace plumb::lab {

// The text of layers.csv: a row for each branch of a block at a logged step, with the axes and the statistics.
std::string layers_csv(const StudyResults& results);
// layers.csv with all statistics of a branch (branch_columns() in signals/probe_json.h).
std::string all_layers_csv(const StudyResults& results);

// Values of a trial by block or by step.
using LayerLine = std::map<double, double>;
using LayerLineOf = std::function<LayerLine(const std::vector<StepStats>& steps)>;
// Charts of layer statistics: one for each condition, with a line for each method. A point is the geometric mean over
// the seeds that trained, or over all seeds if none trained.
struct LayerChart {
  std::string id;           // of the figures; the condition and the branch are appended
  std::string branch = {};  // the kind of branch that the charts are about; empty: all kinds
  PlotAxis x, y;
  LayerLineOf line;           // the values of a trial, whose logged steps are not empty
  LayerLineOf expected = {};  // values that a theory predicts, drawn as a thin line
};
// The plots, condition by condition. Conditions and methods without values are left out. Logarithmic y axes have one
// range in all plots.
std::vector<Plot> layer_plots(const StudyResults& results, const std::vector<LayerChart>& charts);
// The kinds of branches with statistics, such as "attn" and "mlp".
std::set<std::string> branches_of(const StudyResults& results);

}  // namespace plumb::lab
