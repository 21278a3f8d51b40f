// How much does each branch add to the stream, layer by layer, at init and after training? Touvron et al. 2021 (CaiT)
// report that LayerScale makes |g(x)| / |x| more uniform over the layers of a deep network.
#include <cmath>
#include <numeric>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/report/parts.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// The spread over the layers of the ratios of one kind of branch. The spread is the standard deviation of the
// logarithms of the ratios to base 10, and is 0 if all ratios are equal.
double spread(const LayerStats& layers, const std::string& branch) {
  std::vector<double> logs;
  for (const BranchStats& row : layers.branches)
    if (row.branch == branch) logs.push_back(std::log10(row.ratio));
  const auto n = static_cast<double>(logs.size());
  if (n < 2) return unknown;
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  return std::isfinite(mean) ? std::sqrt(squares / (n - 1)) : unknown;  // unknown if a layer adds nothing
}

struct ResidualRatio : Study {
  ResidualRatio()
      : Study("residual_ratio",
              "How much does each branch add to the stream, layer by layer? Is it more uniform with LayerScale?") {
    defaults({.steps = 300, .warmup = 30, .lr = 1e-3});
    control(gate == "pre");
    cli().preset("quick", "depth 36 on glyphs-clutter, one seed; a minute on two cores", {{"--data glyphs-clutter"}});
    cli().preset("cpu",
                 "depth 36 on glyphs-clutter, 600 steps, scalar_gate and layernorm_scaling added, each method at its "
                 "own rate, 12 judged seeds; one to two hours on two cores",
                 {{"--gates pre,layerscale,scalar_gate,layernorm_scaling"},
                  {"--data glyphs-clutter --seeds 0..12 --steps 600 --warmup 60"}});
    add_paper_preset(*this,
                     "DeiT-S with 36 blocks on ImageNet, with and without LayerScale; needs --image-folder and GPUs",
                     {{"--gates --depths", "Touvron et al. 2021, CaiT, the figure of residual ratios"}});
    cli().examples({"--preset quick", "--gates pre,layerscale,deepnorm --depths 24,48 --steps 600"});
    for (const int d : {12, 24, 36, 48})
      for (const auto& [branch, what] : {std::pair("attn", "attention"), {"mlp", "MLP"}}) {
        const std::string uniform =
            fmt::format("ratios of {} are more uniform over the layers with LayerScale than with pre-norm", what);
        const auto is_lower = [&](const char* when) {
          return lower(fmt::format("{}_spread{}", branch, when), gate == "layerscale", gate == "pre").at(depth == d);
        };
        claim(fmt::format("depth {}, trained: {}", d, uniform),
              d == 36 ? "Touvron et al. 2021, CaiT, the figure of residual ratios"
                      : "ours: CaiT's figure is of 36 blocks",
              is_lower(""));
        claim(fmt::format("depth {}, at init: {}", d, uniform), "growth of the stream: linear under pre-norm",
              is_lower("_start").at_init());
      }
    output([](const StudyResults& r) {
      Section section{
          .title = "Ratios by layer, at init and after the training",
          .caption =
              "Ratio: the norm of the term that a branch adds, after its gate, divided by the norm of the stream; mean "
              "over the batch, and geometric mean over seeds. Spread, in the tables: the standard deviation over the "
              "layers of the ratio's logarithm to base 10."};
      std::vector<Plot> plots;
      for (const auto& [when, name] : {std::pair(LoggedStep::first, "at init"), {LoggedStep::last, "trained"}})
        for (Plot& plot : ratio_plots(r, when))
          plot.title += fmt::format(", {}", name), plots.push_back(std::move(plot));
      share_log_range(plots);
      for (const Plot& plot : plots) section.charts.push_back(figure_of(plot));
      return section;
    });
    columns({train_loss, val_accuracy, "attn_spread_start", "mlp_spread_start", "attn_spread", "mlp_spread"});
    measure_layers();
  }

  const Axis<std::string> gate = methods({"pre", "layerscale"});
  const Axis<std::int64_t> depth = depths({36}).at_least(2);

  // Measures the spreads at the first and the last step.
  void train(Trial& trial) const {
    nn::ViT model(vit(trial));
    std::int64_t now = 0;
    std::optional<SignalProbe> probe;
    const auto before = [&](std::int64_t step) {
      now = step;
      if (step == 0 || step + 1 == trial.steps()) probe.emplace(model.stack());
    };
    const auto after = [&](const Gradients& gradients) {
      if (!probe) return;
      const LayerStats layers = probe->finish(gradients);
      probe.reset();
      for (const char* branch : {"attn", "mlp"})
        trial.measure({{fmt::format("{}_spread{}", branch, now == 0 ? "_start" : ""), spread(layers, branch)}});
    };
    trial.train(model, {.before = before, .after = after});
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::residual_ratio(int argc, const char* const* argv) { return run<vision::ResidualRatio>(argc, argv); }
