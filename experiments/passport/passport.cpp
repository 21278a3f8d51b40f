// How do signals and gradients pass through residual networks, at init and during training? The study measures methods
// at several depths and seeds on one data set.
#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/report/parts.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

using LoggedSteps = std::vector<StepStats>;

// The results with only the layers of fresh networks (the first step), or of networks that trained (the last recorded
// step).
StudyResults at(StudyResults r, LoggedStep moment) {
  const bool fresh = moment == LoggedStep::first;
  for (Attached& trial : r.attached) {
    if (!trial.layers.empty()) trial.layers = {fresh ? trial.layers.front() : trial.layers.back()};
    std::erase_if(trial.layers, [&](const StepStats& found) { return (found.step == 0) != fresh; });
  }
  return r;
}

// The statistics of the networks of a group at one moment, one for each seed.
std::vector<const LayerStats*> layers_of(const StudyResults& r, const TrialGroup& group) {
  std::vector<const LayerStats*> found;
  for (const TrialResult* trial : group.trials)
    for (const StepStats& step : r.attached[static_cast<std::size_t>(trial - r.trials.data())].layers)
      found.push_back(&step.layers);
  return found;
}

// A number of a network.
using Number = std::function<double(const LayerStats&)>;

// The mean of the ratios of the branches of a block.
double ratio_of(const LayerStats& layers, std::int64_t block) {
  std::vector<double> ratios;
  for (const BranchStats& row : layers.branches)
    if (row.block == block) ratios.push_back(row.ratio);
  return summarize(ratios).mean;
}

// The L2 norms of the gradients over the branches of each block.
LayerLine gradients_of(const LayerStats& layers) {
  LayerLine norms;
  for (const BranchStats& row : layers.branches) {
    double& norm = norms[static_cast<double>(row.block)];
    norm = std::sqrt(norm * norm + row.grad_norm * row.grad_norm);  // std::hypot would need glibc 2.35
  }
  return norms;
}

// The known values of the branches, or an unknown one.
std::vector<double> values_of(const LayerStats& layers, std::optional<double> BranchStats::*member) {
  std::vector<double> values;
  for (const BranchStats& row : layers.branches)
    if (row.*member) values.push_back(*(row.*member));
  return values.empty() ? std::vector{unknown} : values;
}
double largest_logit(const LayerStats& layers) {
  return std::ranges::max(values_of(layers, &BranchStats::largest_logit));
}
double lowest_entropy(const LayerStats& layers) {
  return std::ranges::min(values_of(layers, &BranchStats::relative_entropy));
}

// Geometric means over the seeds; 0 if a value is 0.
std::string cell(const std::vector<const LayerStats*>& seeds, const Number& number) {
  std::vector<double> values;
  for (const LayerStats* layers : seeds) values.push_back(number(*layers));
  const double mean = std::ranges::find(values, 0.0) != values.end() ? 0 : log_mean(0, values).y;
  return std::isfinite(mean) ? fmt::format("{:.2g}", mean) : "–";
}

// Whether the networks follow their growth law.
bool follow(const std::vector<const LayerStats*>& seeds) {
  return std::ranges::all_of(seeds, [](const LayerStats* l) { return warnings(*l).empty(); });
}

TextTable table_of(const StudyResults& r, LoggedStep moment) {
  using enum TextTable::Align;
  std::vector<std::pair<const char*, Number>> columns{
      {"stream²", [](const LayerStats& l) { return l.branches.back().mean_square; }},
      {"law", [](const LayerStats& l) { return l.branches.back().predicted_mean_square; }},
      {"g/x first", [](const LayerStats& l) { return ratio_of(l, 0); }},
      {"middle", [](const LayerStats& l) { return ratio_of(l, l.depth() / 2); }},
      {"last", [](const LayerStats& l) { return ratio_of(l, l.depth() - 1); }},
      {"grad first", [](const LayerStats& l) { return gradients_of(l).begin()->second; }},
      {"last", [](const LayerStats& l) { return gradients_of(l).rbegin()->second; }}};
  if (moment == LoggedStep::last)
    columns.insert(columns.end(), {{"entropy", lowest_entropy}, {"logit", largest_logit}});
  TextTable table;
  table.column("gate", left), table.column("depth", right);
  for (const auto& [title, number] : columns) table.column(title, right);
  if (moment == LoggedStep::first) table.column("its law", left);
  for (const TrialGroup& group : r.groups()) {
    const std::vector<const LayerStats*> seeds = layers_of(r, group);
    if (seeds.empty()) continue;
    std::vector<std::string> row{group.method, std::to_string(group.depth())};
    for (const auto& [title, number] : columns) row.push_back(cell(seeds, number));
    const bool followed = follow(seeds);
    if (moment == LoggedStep::first) row.emplace_back(followed ? "followed" : "not followed");
    table.row(std::move(row), moment == LoggedStep::last || followed ? "" : "31");
  }
  return table;
}

TextTable warnings_of(const StudyResults& r) {
  using enum TextTable::Align;
  TextTable table;
  table.column("gate", left), table.column("depth", right), table.column("warning", left);
  for (const TrialGroup& group : r.groups()) {
    std::vector<std::string> found;
    for (const LayerStats* layers : layers_of(r, group))
      for (const std::string& warning : warnings(*layers))
        if (std::ranges::find(found, warning) == found.end()) found.push_back(warning);
    for (const std::string& warning : found) table.row({group.method, std::to_string(group.depth()), warning}, "31");
  }
  return table;
}

void append(Section& section, const std::vector<Plot>& plots) {
  for (const Plot& plot : plots) section.charts.push_back(figure_of(plot));
}

// The section with the table and the charts by block of a moment.
Section section_at(LoggedStep moment, const StudyResults& all, Section section) {
  const bool fresh = moment == LoggedStep::first;
  const StudyResults r = at(all, moment);
  section.table = table_of(r, moment);
  const auto add = [&](const char* name, const char* x, const char* y, const LayerLineOf& line,
                       const LayerLineOf& expected = {}) {
    append(section, layer_plots(r, {{.id = fmt::format("{}-{}", fresh ? "init" : "last", name),
                                     .x = {.title = x},
                                     .y = {.title = fmt::format("{}, log scale", y), .log = true},
                                     .line = line,
                                     .expected = expected}}));
  };
  // The stream between blocks. x = 0 is the input, and x = l is the output of block l - 1.
  const auto stream = [](double BranchStats::*member) -> LayerLineOf {
    return [=](const LoggedSteps& steps) {
      LayerLine line{{0, steps.front().layers.input_mean_square}};
      for (const BranchStats& row : steps.front().layers.branches)
        line[static_cast<double>(row.block + 1)] = row.*member;
      return line;
    };
  };
  add("stream", "blocks passed", "mean square of the stream", stream(&BranchStats::mean_square),
      fresh ? stream(&BranchStats::predicted_mean_square) : LayerLineOf());
  // The section "Branch against stream" shows the last step.
  if (fresh) append(section, ratio_plots(r, moment));
  add("gradient", "block", "gradient norm",
      [](const LoggedSteps& steps) { return gradients_of(steps.front().layers); });
  return section;
}

Section training_section(const StudyResults& r) {
  Section section{
      .title = "Signals while training",
      .caption =
          "‖Δp‖ / ‖p‖: the change of a branch's weights and biases by one optimizer step, divided by their norm; mean "
          "over the branches. Largest logit: q·k/√d of all blocks. If logits grow without bound, attention ends in one "
          "key. Entropy: mean over blocks, heads and queries, divided by ln T for T tokens; 1 is uniform attention. "
          "Logits and entropy are those of the first four samples of the batch."};
  if (table_of(at(r, LoggedStep::last), LoggedStep::last).empty()) return section;
  const auto add = [&](const char* id, const PlotAxis& y, const Number& number) {
    const auto line = [=](const LoggedSteps& steps) {
      LayerLine by_step;
      for (const auto& [step, layers] : steps) by_step[static_cast<double>(step)] = number(layers);
      return by_step;
    };
    append(section, layer_plots(r, {{.id = id, .x = {.title = "step"}, .y = y, .line = line}}));
  };
  const auto mean = [](std::optional<double> BranchStats::*member) {
    return [=](const LayerStats& l) { return summarize(values_of(l, member)).mean; };
  };
  add("steps-update", {.title = "‖Δp‖ / ‖p‖, log scale", .log = true}, mean(&BranchStats::update));
  add("steps-logit", {.title = "largest logit, log scale", .log = true}, largest_logit);
  add("steps-entropy", {.title = "entropy / ln T", .low = 0, .high = 1}, mean(&BranchStats::relative_entropy));
  return section;
}

struct Passport : Study {
  Passport()
      : Study("passport",
              "Shows how signals and gradients pass through residual networks, at init and during training, and "
              "compares them with each method's prediction.") {
    methods({"post", "pre", "deepnorm", "rezero", "layerscale", "layernorm_scaling"}, "Residual methods to measure");
    depths({12, 48}, "Numbers of blocks (attention and MLP)");
    defaults({.steps = 0, .lr = 3e-3});  // the same learning rate as in depth_stability
    options().least_steps = 0;
    judging().off = true;  // the study describes networks at one learning rate, and compares no losses
    Cli& cli = this->cli();
    cli.section("Signals");
    cli.option("--every", &every, "Number of steps between two measurements of the layers during training").at_least(1);
    cli.option("--probes", &probes, "Number of random vectors that estimate the Jacobian").at_least(2);
    cli.option("--no-jacobian", &no_jacobian, "Do not measure the Jacobian, which takes --probes backward passes");
    cli.examples({"--gates all --depths 12,48",
                  "--gates pre,rezero,layerscale --depths 24 --steps 400 --every 50 --seeds 0..2"});
    title("Signals by layer");
    output("layers.csv", all_layers_csv);
    output([](const StudyResults& r) {
      return section_at(
          LoggedStep::first, r,
          {.title = "Signals at init",
           .caption = "stream²: mean square of the stream after the last branch; law: its prediction by the method's "
                      "growth law. g/x: norm of the term that a branch adds, divided by the norm of the stream, mean "
                      "over the branches of the first, middle and last block. grad: gradient norm of the branches of "
                      "the first and last block. its law: whether the network follows its growth law. Numbers are "
                      "geometric means over seeds. Thin lines are predictions."});
    });
    output([](const StudyResults& r) {
      const StudyResults fresh = at(r, LoggedStep::first);
      const std::vector<TrialGroup> networks = fresh.groups();
      const auto others =
          std::ranges::count_if(networks, [&](const TrialGroup& one) { return !follow(layers_of(fresh, one)); });
      return Section{
          .title = "Networks that do not follow their growth law",
          .caption = fmt::format("The first branch after which the mean square of the stream differs from the "
                                 "prediction by a factor above {:g}, or after a norm from 1 by a factor above {:g}.",
                                 law_tolerance, norm_tolerance),
          .answer = fmt::format("At init, {} of {} networks follow their growth law.", std::ssize(networks) - others,
                                networks.size()),
          .table = warnings_of(fresh)};
    });
    output([](const StudyResults& r) {
      return section_at(
          LoggedStep::last, r,
          {.title = "Signals at the last step",
           .caption = "The columns of the table above, at the last recorded step of the training. entropy: lowest "
                      "entropy of all blocks, divided by ln T; logit: largest attention logit."});
    });
    output(training_section);
  }

  std::int64_t every = 50, probes = 32;
  bool no_jacobian = false;

  void train(Trial& trial) const {
    nn::ViT model(vit(trial));
    nn::audit_init(model, trial.seed());
    trial.calibrate(model);
    measure_fresh(model, trial);
    if (trial.steps() > 0) trial.train(model, record_layers(trial, model, every));
  }

  // Measures the fresh network: one forward and one backward pass over the first training batch.
  void measure_fresh(nn::ViT& model, Trial& trial) const {
    const RandomScope random({.seed = trial.seed(), .step = 0});
    const ImageSet& set = vision::images(trial).data().train;
    BatchLoader loader(set, vision::images(trial).normalization(),
                       {.batch = trial.options().batch, .seed = trial.seed()});
    const Batch batch = to_tensors(loader.next(), set);
    SignalProbe probe(model.stack());
    const Gradients gradients = backward(cross_entropy(model(batch.images), batch.labels));
    const LayerStats layers = probe.finish(gradients);
    const std::vector<std::string> found = warnings(layers);
    if (!found.empty()) trial.warn(found.front());
    if (trial.steps() == 0) {  // the first step of a training attaches the same statistics, and the update
      attach_layers(trial, 0, layers);
      trial.measure({{"loss", gradients.loss()}, {"grad_norm", gradients.norm()}});
    }
    trial.measure({{"warnings", static_cast<double>(found.size())}});
    if (no_jacobian) return;
    const Estimate measured = jacobian(model.stack(), layers, {.probes = probes, .seed = trial.seed()});
    trial.measure({{"jacobian", measured.value}, {"jacobian_error", measured.standard_error}});
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::passport(int argc, const char* const* argv) { return run<vision::Passport>(argc, argv); }
