// How do signals and gradients pass through residual networks, at init and during training? The study measures methods
// at several depths and seeds on one data set.
#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/report/parts.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

struct Options {
  std::int64_t every = 50, probes = 32;
  bool no_jacobian = false;
};

// Measures the fresh network: one forward and one backward pass over the first training batch.
void measure_fresh(nn::ViT& model, lab::Trial& trial, const Options& o) {
  const RandomScope random({.seed = trial.seed(), .step = 0});
  BatchLoader loader(vision::images(trial).data().train, vision::images(trial).normalization(),
                     {.batch = trial.options().batch, .seed = trial.seed()});
  const Batch batch = to_tensors(loader.next(), vision::images(trial).data().train);
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
  if (o.no_jacobian) return;
  const Estimate measured = jacobian(model.stack(), layers, {.probes = o.probes, .seed = trial.seed()});
  trial.measure({{"jacobian", measured.value}, {"jacobian_error", measured.standard_error}});
}

// `fresh` is the network before training. `last` is the last recorded step of a network that trained.
enum class Moment { fresh, last };
using LoggedSteps = std::vector<StepStats>;

const LayerStats* at(const LoggedSteps& steps, Moment moment) {
  if (steps.empty()) return nullptr;
  const StepStats& found = moment == Moment::fresh ? steps.front() : steps.back();
  return (found.step == 0) == (moment == Moment::fresh) ? &found.layers : nullptr;
}

const LoggedSteps& steps_of(const StudyResults& r, const TrialResult* trial) {
  return r.attached[static_cast<std::size_t>(trial - r.trials.data())].layers;
}

// The statistics of the networks of a group, one for each seed.
std::vector<const LayerStats*> layers_of(const StudyResults& r, const TrialGroup& group, Moment moment) {
  std::vector<const LayerStats*> found;
  for (const TrialResult* trial : group.trials)
    if (const LayerStats* layers = at(steps_of(r, trial), moment)) found.push_back(layers);
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

// The stream between blocks. x = 0 is the input, and x = l is the output of block l - 1.
LayerLine stream_of(const LayerStats& layers, double BranchStats::*member) {
  LayerLine stream{{0, layers.input_mean_square}};
  for (const BranchStats& row : layers.branches) stream[static_cast<double>(row.block + 1)] = row.*member;
  return stream;
}

std::vector<double> values_of(const LayerStats& layers, std::optional<double> BranchStats::*member) {
  std::vector<double> values;
  for (const BranchStats& row : layers.branches)
    if (row.*member) values.push_back(*(row.*member));
  return values;
}
double largest_logit(const LayerStats& layers) {
  const std::vector<double> logits = values_of(layers, &BranchStats::largest_logit);
  return logits.empty() ? unknown : std::ranges::max(logits);
}
double lowest_entropy(const LayerStats& layers) {
  const std::vector<double> entropies = values_of(layers, &BranchStats::relative_entropy);
  return entropies.empty() ? unknown : std::ranges::min(entropies);
}

// Geometric means over the seeds; 0 if a value is 0.
std::string cell(const std::vector<const LayerStats*>& seeds, const Number& number) {
  std::vector<double> values;
  for (const LayerStats* layers : seeds) values.push_back(number(*layers));
  const double mean = std::ranges::find(values, 0.0) != values.end() ? 0 : log_mean(0, values).y;
  return std::isfinite(mean) ? fmt::format("{:.2g}", mean) : "–";
}

TextTable table_of(const StudyResults& r, Moment moment) {
  using enum TextTable::Align;
  std::vector<std::pair<const char*, Number>> columns{
      {"stream²", [](const LayerStats& l) { return l.branches.back().mean_square; }},
      {"law", [](const LayerStats& l) { return l.branches.back().predicted_mean_square; }},
      {"g/x first", [](const LayerStats& l) { return ratio_of(l, 0); }},
      {"middle", [](const LayerStats& l) { return ratio_of(l, l.depth() / 2); }},
      {"last", [](const LayerStats& l) { return ratio_of(l, l.depth() - 1); }},
      {"grad first", [](const LayerStats& l) { return gradients_of(l).begin()->second; }},
      {"last", [](const LayerStats& l) { return gradients_of(l).rbegin()->second; }}};
  if (moment == Moment::last) columns.insert(columns.end(), {{"entropy", lowest_entropy}, {"logit", largest_logit}});
  TextTable table;
  table.column("gate", left), table.column("depth", right);
  for (const auto& [title, number] : columns) table.column(title, right);
  if (moment == Moment::fresh) table.column("its law", left);
  for (const TrialGroup& group : r.groups()) {
    const std::vector<const LayerStats*> seeds = layers_of(r, group, moment);
    if (seeds.empty()) continue;
    std::vector<std::string> row{group.method, std::to_string(group.depth())};
    for (const auto& [title, number] : columns) row.push_back(cell(seeds, number));
    const bool followed = std::ranges::all_of(seeds, [](const LayerStats* l) { return warnings(*l).empty(); });
    if (moment == Moment::fresh) row.emplace_back(followed ? "followed" : "not followed");
    table.row(std::move(row), moment == Moment::last || followed ? "" : "31");
  }
  return table;
}

TextTable warnings_of(const StudyResults& r) {
  using enum TextTable::Align;
  TextTable table;
  table.column("gate", left), table.column("depth", right), table.column("warning", left);
  for (const TrialGroup& group : r.groups()) {
    std::vector<std::string> found;
    for (const LayerStats* layers : layers_of(r, group, Moment::fresh))
      for (const std::string& warning : warnings(*layers))
        if (std::ranges::find(found, warning) == found.end()) found.push_back(warning);
    for (const std::string& warning : found) table.row({group.method, std::to_string(group.depth()), warning}, "31");
  }
  return table;
}

void append(Section& section, const std::vector<Plot>& plots) {
  for (const Plot& plot : plots) section.charts.push_back(figure_of(plot));
}

// The charts of a moment by block.
void add_by_block(Section& section, const StudyResults& r, Moment moment) {
  using AtMoment = std::function<LayerLine(const LayerStats&)>;
  const auto of = [moment](const AtMoment& line) -> LayerLineOf {
    if (!line) return {};
    return [=](const LoggedSteps& steps) {
      const LayerStats* layers = at(steps, moment);
      return layers ? line(*layers) : LayerLine();
    };
  };
  const auto add = [&](const char* name, const char* x, const char* y, const AtMoment& line,
                       const AtMoment& expected = {}) {
    append(section, layer_plots(r, {{.id = fmt::format("{}-{}", moment == Moment::fresh ? "init" : "last", name),
                                     .x = {.title = x},
                                     .y = {.title = fmt::format("{}, log scale", y), .log = true},
                                     .line = of(line),
                                     .expected = of(expected)}}));
  };
  const auto stream = [](double BranchStats::*member) {
    return [=](const LayerStats& l) { return stream_of(l, member); };
  };
  const AtMoment law = moment == Moment::fresh ? stream(&BranchStats::predicted_mean_square) : AtMoment();
  add("stream", "blocks passed", "mean square of the stream", stream(&BranchStats::mean_square), law);
  // The section "Branch against stream" shows the last step.
  if (moment == Moment::fresh) append(section, ratio_plots(r, LoggedStep::first));
  add("gradient", "block", "gradient norm", gradients_of);
}

Section training_section(const StudyResults& r) {
  Section section{.title = "Signals while training",
                  .caption =
                      "‖Δp‖ / ‖p‖: the change of a branch's weights and biases by one optimizer step, divided "
                      "by their norm; mean over the branches. Largest logit: q·k/√d of all blocks. If logits "
                      "grow without bound, attention ends in one key. Entropy: mean over blocks, heads and "
                      "queries, divided by ln T for T tokens; 1 is uniform attention. Logits and entropy are "
                      "those of the first four samples of the batch."};
  if (table_of(r, Moment::last).empty()) return section;
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

void declare_sections(Study& study) {
  study.output([](const StudyResults& r) {
    Section section{.title = "Signals at init",
                    .caption =
                        "stream²: mean square of the stream after the last branch; law: its prediction by the "
                        "method's growth law. g/x: norm of the term that a branch adds, divided by the norm of "
                        "the stream, mean over the branches of the first, middle and last block. grad: gradient "
                        "norm of the branches of the first and last block. its law: whether the network follows "
                        "its growth law. Numbers are geometric means over seeds. Thin lines are predictions.",
                    .table = table_of(r, Moment::fresh)};
    add_by_block(section, r, Moment::fresh);
    return section;
  });
  study.output([](const StudyResults& r) {
    return Section{.title = "Networks that do not follow their growth law",
                   .caption = fmt::format("The first branch after which the mean square of the stream differs from the "
                                          "prediction by a factor above {:g}, or after a norm from 1 by a factor "
                                          "above {:g}.",
                                          law_tolerance, norm_tolerance),
                   .table = warnings_of(r)};
  });
  study.output([](const StudyResults& r) {
    Section section{.title = "Signals at the last step",
                    .caption =
                        "The columns of the table above, at the last recorded step of the training. entropy: "
                        "lowest entropy of all blocks, divided by ln T; logit: largest attention logit.",
                    .table = table_of(r, Moment::last)};
    add_by_block(section, r, Moment::last);
    return section;
  });
  study.output(training_section);
}

}  // namespace

}  // namespace plumb::vision

int plumb::lab::passport(int argc, const char* const* argv) {
  using namespace vision;
  vision::Study study(
      "passport",
      "Shows how signals and gradients pass through residual networks, at init and during training, and "
      "compares them with each method's prediction.");
  Options o;
  study.methods({"post", "pre", "deepnorm", "rezero", "layerscale", "layernorm_scaling"},
                "Residual methods to measure");
  study.depths({12, 48}, "Numbers of blocks (attention and MLP)");
  study.defaults({.steps = 0, .lr = 3e-3});  // the same learning rate as in depth_stability
  study.options().least_steps = 0;
  study.judging().off = true;  // the study describes networks at one learning rate, and compares no losses
  Cli& cli = study.cli();
  cli.section("Signals");
  cli.option("--every", &o.every, "Number of steps between two measurements of the layers during training").at_least(1);
  cli.option("--probes", &o.probes, "Number of random vectors that estimate the Jacobian").at_least(2);
  cli.option("--no-jacobian", &o.no_jacobian, "Do not measure the Jacobian, which takes --probes backward passes");
  cli.examples(
      {"--gates all --depths 12,48", "--gates pre,rezero,layerscale --depths 24 --steps 400 --every 50 --seeds 0..2"});
  study.title("Signals by layer");
  study.output({"layers.csv", all_layers_csv});
  declare_sections(study);
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial));
    nn::audit_init(model, trial.seed());
    trial.calibrate(model);
    measure_fresh(model, trial, o);
    if (trial.steps() > 0) trial.train(model, record_layers(trial, model.stack(), o.every));
  });
}
