// How deep does each method train? The search doubles the depth until most seeds fail to train, then bisects the
// interval until the interval is a quarter of an octave wide. Hopeless trials are stopped half way.
#include "experiments/programs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/study/edge_search.h"
#include "experiments/lab/train/trained_at.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"

using namespace plumb;

namespace {

constexpr int ticks = 4;  // number of ticks per octave; neighbouring depths differ by 19 %
constexpr std::int64_t least = 4;

// Depths that papers report. The papers use other sizes and lengths of training.
std::string published_depth(const std::string& gate) {
  if (gate == "rezero") return "128 layers (majumderb/rezero)";
  if (gate == "deepnorm") return "1,000 layers (Wang et al. 2022, abstract, as a secondary text reports it)";
  if (gate == "fixup") return "10,000 layers (Zhang, Dauphin, Ma 2019, abstract, as a secondary text reports it)";
  if (gate == "skipinit") return "1,000 layers (De, Smith 2020, as a secondary text reports it)";
  return "–";
}

// The result of a search in words.
std::string limit_words(const std::map<int, lab::Share>& known, const lab::Octaves& depths, std::int64_t most) {
  const auto depth = [&](int tick) { return std::lround(depths.at(tick)); };
  const auto trains = std::ranges::find_if(known, [](const auto& k) { return k.second.most(); });
  if (trains == known.end()) return fmt::format("none ({} was the lowest tried)", depth(known.begin()->first));
  const auto edge = lab::edge_above(known, trains->first);
  if (!edge->outside)
    return fmt::format("{} or more ({} was the deepest tried)", depth(edge->inside),
                       std::min<std::int64_t>(most, depth(edge->inside)));
  return fmt::format("{}, not {}", depth(edge->inside), depth(*edge->outside));
}

}  // namespace

int plumb::lab::depth_limit(int argc, const char* const* argv) {
  vision::Study study("depth_limit", "How deep can a network be for each method to still train it?");
  const auto gate = study
                        .axis<std::string>("--gates", {"post", "pre", "rezero", "fixup", "layerscale", "deepnorm"},
                                           "Methods to compare")
                        .one_of_methods("method");
  const auto lr = study.axis<double>("--lrs", {3e-3}, "Peak learning rates").above(0);
  const auto depth = study.searched<std::int64_t>("depth");
  std::int64_t first = 12, most = 192;
  lab::TrainedAt trained;
  lab::Cli& cli = study.cli();
  cli.section("Search");
  cli.option("--first", &first, "The first depth to try, in blocks")
      .at_least(static_cast<double>(least))
      .at_most(lab::largest_size);
  cli.option("--most", &most, "The largest depth to try, in blocks")
      .at_least(static_cast<double>(least))
      .at_most(lab::largest_size)
      .scope(lab::Scope::study);
  trained.declare(cli, [&study] { return study.augmentation().any(); });
  cli.rule([&] { lab::usage_check(first <= most, "--first {} is larger than --most {}", first, most); });
  study.options().steps = 300, study.options().seeds = {0, 1, 2}, study.options().stop_hopeless = true;
  study.network().dim = 32;
  study.network().recipe = vision::RecipeKind::paper,
  study.network().weight_init =
      vision::WeightInit::xavier;  // all methods train fast with Xavier weights, so a failure is not just slow training
  cli.preset("quick", "three methods up to depth 48, 200 steps, one seed; three minutes on two cores", [&] {
    gate.set({"post", "pre", "rezero"});
    study.options().steps = 200, study.options().seeds = {0};
    most = 48;
  });
  cli.preset("cpu", "six methods up to depth 384 at two learning rates, five seeds; two hours on two cores", [&] {
    most = 384, lr.set({1e-3, 3e-3}), study.options().seeds = {0, 1, 2, 3, 4};
  });
  cli.preset("paper",
             "DeiT-S's size on ImageNet for a twentieth of its epochs (no paper has this search); needs "
             "--image-folder and GPUs",
             [&] {
               vision::set_deit_small_for_search(study, [gate] { return gate.values(); });
               lr.set({study.optimization().lr});
               vision::explain(study, "--lrs", "facebookresearch/deit, main.py: 5e-4 x batch / 512");
               most = 768;
               vision::explain(study, "--most", "ours");
               vision::explain(study, "--first", "DeiT-S");
             });
  cli.example("--preset quick");
  cli.example("--gates post,deepnorm --most 768 --seeds 0..4 --jobs 2");

  const auto depths = [&] { return lab::Octaves{static_cast<double>(first), ticks}; };
  study.search(lab::edge_search([&] {
    const lab::Octaves at = depths();
    const int lowest = at.lowest_whole(static_cast<double>(least));
    return lab::EdgeSearch{.axis = "depth",
                           .octaves = at,
                           .lowest = lowest,
                           .highest = static_cast<int>(std::floor(
                               ticks * std::log2(static_cast<double>(most) / static_cast<double>(first)) + 1e-9)),
                           .edges = lab::EdgeSearch::Edges::upper,
                           .value = [at](int tick) { return static_cast<std::int64_t>(std::lround(at.at(tick))); },
                           // Tries a depth that is an octave smaller.
                           .look = [lowest](const std::map<int, lab::Share>& known) -> std::optional<int> {
                             const int shallowest = known.begin()->first;
                             if (shallowest <= lowest) return std::nullopt;
                             return std::max(shallowest - ticks, lowest);
                           }};
  }));
  study.output([&](const lab::StudyResults& r) {
    using enum lab::TextTable::Align;
    lab::Section section{
        .title = "Largest depth at which most seeds train",
        .caption = fmt::format(
            "A network counts as trained if its final training loss is below {:g} of the chance loss. Brackets show "
            "the "
            "share of seeds that trained; the figure has Wilson's 95 % intervals. Published depths are for other data "
            "and sizes, in layers as each paper counts them.",
            trained.share)};
    section.table.column("method", left);
    section.table.column("trains to depth", left);
    section.table.column("seeds that trained, by depth", left);
    section.table.column("published", left);
    lab::Plot plot{.id = "share-by-depth",
                   .title = "Share of seeds that train",
                   .x = {.title = "depth, log scale", .log = true},
                   .y = {.title = "share of seeds", .low = 0, .high = 1},
                   .interval = lab::PlotInterval::bars};
    for (const lab::TrialGroup& place : r.groups("depth")) {
      const auto known = lab::shares(place.trials, "depth", depths());
      std::vector<std::string> tried;
      lab::PlotSeries& series = plot.series.emplace_back(
          lab::PlotSeries{.name = place.point.label(), .style = static_cast<int>(plot.series.size())});
      for (const auto& [tick, share] : known) {
        const long blocks = std::lround(depths().at(tick));
        tried.push_back(fmt::format("{} ({})", blocks, to_string(share)));
        series.points.push_back({static_cast<double>(blocks), share.value(), share.low(), share.high()});
      }
      section.table.row({place.point.label(), limit_words(known, depths(), most),
                         fmt::format("{}", fmt::join(tried, ", ")),
                         published_depth(place.point.get<std::string>("gate"))});
    }
    section.charts.push_back(std::move(plot));
    return section;
  });
  study.columns({"trained", "train_loss", "val_accuracy", "diverged_at"});
  study.show({"train_loss", "val_accuracy"});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = trial[gate]}));
    trial.train(model);
    trained.measure(trial);
  });
}
