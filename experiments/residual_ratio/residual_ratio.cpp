// How much does each branch add to the stream, layer by layer, at init and after training? Touvron et al. 2021 (CaiT)
// report that LayerScale makes |g(x)| / |x| more uniform over the layers of a deep network.
#include "experiments/programs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/stats/summary.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"

using namespace plumb;

namespace {

// The spread over the layers of the ratios of one kind of branch. The spread is the standard deviation of the
// logarithms of the ratios to base 10, and is 0 if all ratios are equal.
double spread(const lab::LayerStats& layers, const std::string& branch) {
  std::vector<double> logs;
  for (const lab::BranchStats& row : layers.branches)
    if (row.branch == branch) logs.push_back(std::log10(row.ratio));
  if (!std::ranges::all_of(logs, [](double log) { return std::isfinite(log); }))
    return lab::unknown;  // unknown, because a layer adds nothing
  const auto n = static_cast<double>(logs.size());
  if (n < 2) return lab::unknown;
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  return std::sqrt(squares / (n - 1));
}

// Measures the spreads at the first and the last step. Also records the layers.
lab::AroundStep watch(lab::Trial& trial, const nn::Stack& stack) {
  return [&trial, &stack,
          record = lab::record_layers(trial, stack)](std::int64_t step) -> std::function<void(const Gradients&)> {
    const auto after = record(step);
    const bool first = step == 0;
    if (!first && step + 1 != trial.steps()) return after;
    return [&trial, after, first, probe = std::make_shared<lab::SignalProbe>(stack)](const Gradients& g) {
      if (after) after(g);
      const lab::LayerStats layers = probe->finish(g);
      for (const char* branch : {"attn", "mlp"})
        trial.measure({{fmt::format("{}_spread{}", branch, first ? "_start" : ""), spread(layers, branch)}});
    };
  };
}

// A plot of the ratio by block, for one kind of branch, at the first or the last recorded step. The values are
// geometric means over the seeds.
lab::Plot ratios(const lab::StudyResults& r, const std::string& branch, bool first) {
  std::vector<std::string> names;  // names in the order of the trials, as in the rest of the report
  std::map<std::string, std::map<std::int64_t, std::vector<double>>> logs;
  for (std::size_t i = 0; i < r.records.size(); ++i) {
    const lab::Record& record = r.records[i];
    const std::vector<lab::StepStats>& steps = r.attached[i].layers;
    if (steps.empty() || record.status != lab::Status::ok) continue;
    const std::string name = record.point.without("seed").label();
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    for (const lab::BranchStats& row : (first ? steps.front() : steps.back()).layers.branches)
      if (row.branch == branch) logs[name][row.block].push_back(std::log(row.ratio));
  }
  lab::Plot plot{.id = fmt::format("ratio-{}-{}", branch, first ? "start" : "end"),
                 .title = fmt::format("{} {}", branch == "attn" ? "attention" : "MLP", first ? "at init" : "trained"),
                 .x = {.title = "block"},
                 .y = {.title = "‖g(x)‖ / ‖x‖, log scale", .log = true}};
  for (const std::string& name : names) {
    lab::PlotSeries& series =
        plot.series.emplace_back(lab::PlotSeries{.name = name, .style = static_cast<int>(plot.series.size())});
    for (const auto& [block, values] : logs[name]) {
      const lab::Summary s = lab::summarize(values);
      lab::PlotPoint point{.x = static_cast<double>(block), .y = std::exp(s.mean)};
      if (s.half_width) point.low = std::exp(s.low()), point.high = std::exp(s.high());
      series.points.push_back(point);
    }
  }
  return plot;
}

}  // namespace

int plumb::lab::residual_ratio(int argc, const char* const* argv) {
  vision::Study study(
      "residual_ratio",
      "How much does each branch add to the stream, layer by layer? Is it more uniform with LayerScale?");
  const auto gate =
      study.axis<std::string>("--gates", {"pre", "layerscale"}, "Residual methods to compare").one_of_methods("gate");
  const auto depth =
      study.axis<int>("--depths", {36}, "Numbers of blocks").at_least(2).at_most(lab::largest_size).slowest();
  study.options().steps = 300, study.options().warmup = 30;
  study.optimization().lr = 1e-3;
  study.judging().control = "pre";
  study.cli().preset("quick", "depth 36 on glyphs-clutter, one seed; a minute on two cores",
                     [&] { study.images().data = "glyphs-clutter"; });
  study.cli().preset(
      "cpu",
      "depth 36 on glyphs-clutter, 600 steps, scalar_gate and layernorm_scaling added, each method at its own rate, "
      "12 judged seeds; one to two hours on two cores",
      [&] {
        gate.set({"pre", "layerscale", "scalar_gate", "layernorm_scaling"});
        study.images().data = "glyphs-clutter", study.options().judge_seeds(12);
        study.options().steps = 600, study.options().warmup = 60;
      });
  study.cli().preset(
      "paper", "DeiT-S with 36 blocks on ImageNet, with and without LayerScale; needs --image-folder and GPUs", [&] {
        vision::set_deit_small(study, [gate] { return gate.values(); });
        vision::explain(study, "--gates", "Touvron et al. 2021, CaiT, the figure of residual ratios");
        vision::explain(study, "--depths", "Touvron et al. 2021, CaiT, the figure of residual ratios");
      });
  study.cli().example("--preset quick");
  study.cli().example("--gates pre,layerscale,deepnorm --depths 24,48 --steps 600");
  for (const int d : {12, 24, 36, 48})
    for (const auto& [branch, what] : {std::pair("attn", "attention"), {"mlp", "MLP"}}) {
      study.claim(
          fmt::format(
              "depth {}, trained: ratios of {} are more uniform over the layers with LayerScale than with pre-norm", d,
              what),
          d == 36 ? "Touvron et al. 2021, CaiT, the figure of residual ratios" : "ours: CaiT's figure is of 36 blocks",
          lab::lower(fmt::format("{}_spread", branch), {{"gate", "layerscale"}}, {{"gate", "pre"}}).at({{"depth", d}}));
      study.claim(
          fmt::format(
              "depth {}, at init: ratios of {} are more uniform over the layers with LayerScale than with pre-norm", d,
              what),
          "growth of the stream: linear under pre-norm",
          lab::lower(fmt::format("{}_spread_start", branch), {{"gate", "layerscale"}}, {{"gate", "pre"}})
              .at({{"depth", d}})
              .at_init());
    }
  study.output([](const lab::StudyResults& r) {
    return lab::Section{
        .title = "Ratios by layer",
        .caption =
            "Ratio: the norm of the term that a branch adds, after its gate, divided by the norm of the stream; mean "
            "over "
            "the batch. Spread, in the table: the standard deviation over the layers of the ratio's logarithm to base "
            "10.",
        .charts = {ratios(r, "attn", true), ratios(r, "mlp", true), ratios(r, "attn", false), ratios(r, "mlp", false)}};
  });
  study.columns({"train_loss", "val_accuracy", "attn_spread_start", "mlp_spread_start", "attn_spread", "mlp_spread"});
  study.show({"train_loss", "attn_spread_start", "mlp_spread_start", "attn_spread", "mlp_spread"});
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = trial[gate]}));
    trial.train(model, watch(trial, model.stack()));
  });
}
