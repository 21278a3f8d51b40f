// How deep does each method train? The search doubles the depth until most seeds fail to train, then bisects the
// interval until the interval is a quarter of an octave wide. Hopeless trials are stopped half way.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/study/edge_search.h"
#include "experiments/lab/train/trained_at.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

constexpr int ticks = 4;  // number of ticks per octave; neighbouring depths differ by 19 %
constexpr std::int64_t least_depth = 4;

// Depths that papers report. The papers use other sizes and lengths of training.
std::string published_depth(const std::string& gate) {
  if (gate == "rezero") return "128 layers (majumderb/rezero)";
  if (gate == "deepnorm") return "1,000 layers (Wang et al. 2022, abstract, as a secondary text reports it)";
  if (gate == "fixup") return "10,000 layers (Zhang, Dauphin, Ma 2019, abstract, as a secondary text reports it)";
  if (gate == "skipinit") return "1,000 layers (De, Smith 2020, as a secondary text reports it)";
  return "–";
}

// The result of a search in words.
std::string limit_words(const std::map<int, Share>& known, const Octaves& depths, std::int64_t most) {
  const auto depth = [&](int tick) { return std::lround(depths.at(tick)); };
  const auto trains = std::ranges::find_if(known, [](const auto& k) { return k.second.most(); });
  if (trains == known.end()) return fmt::format("none ({} was the lowest tried)", depth(known.begin()->first));
  const auto edge = edge_above(known, trains->first);
  if (!edge->outside)
    return fmt::format("{} or more ({} was the deepest tried)", depth(edge->inside),
                       std::min<std::int64_t>(most, depth(edge->inside)));
  return fmt::format("{}, not {}", depth(edge->inside), depth(*edge->outside));
}

struct DepthLimit : Study {
  DepthLimit() : Study("depth_limit", "How deep can a network be for each method to still train it?") {
    declare_options();
    defaults({.steps = 300, .seeds = {0, 1, 2}, .stop_hopeless = true});
    network().dim = 32;
    network().recipe = RecipeKind::paper;
    // All methods train fast with Xavier weights, so a failure is not just slow training.
    network().weight_init = WeightInit::xavier;
    search(edge_search([this] { return next_search(); }));
    output([this](const StudyResults& r) { return section_of(r); });
    columns({"trained", train_loss, val_accuracy, "diverged_at"});
  }

  const Axis<std::string> gate = methods({"post", "pre", "rezero", "fixup", "layerscale", "deepnorm"});
  const Axis<double> lr = learning_rates({3e-3});
  const Axis<std::int64_t> depth = searched<std::int64_t>("depth");
  std::int64_t first = 12, most = 192;
  TrainedAt trained;

  void declare_options() {
    cli().section("Search");
    cli()
        .option("--first", &first, "The first depth to try, in blocks")
        .at_least(static_cast<double>(least_depth))
        .at_most(largest_size);
    cli()
        .option("--most", &most, "The largest depth to try, in blocks")
        .at_least(static_cast<double>(least_depth))
        .at_most(largest_size)
        .scope(Scope::study);
    trained.declare(cli(), [this] { return augmentation().any(); });
    cli().rule([this] { usage_check(first <= most, "--first {} is larger than --most {}", first, most); });
    cli().preset("quick", "three methods up to depth 48, 200 steps, one seed; three minutes on two cores",
                 {{"--gates post,pre,rezero --steps 200 --seeds 0 --most 48"}});
    cli().preset("cpu", "six methods up to depth 384 at two learning rates, five seeds; two hours on two cores",
                 {{"--most 384 --lrs 0.001,0.003 --seeds 0..4"}});
    add_paper_preset(
        *this, "paper",
        "DeiT-S's size on ImageNet for a twentieth of its epochs (no paper has this search); needs --image-folder and "
        "GPUs",
        deit_small_for_search() + Settings{{"--lrs 0.001", "facebookresearch/deit, main.py: 5e-4 x batch / 512"},
                                           {"--most 768", "ours"},
                                           {"--first", "DeiT-S"}});
    cli().examples({"--preset quick", "--gates post,deepnorm --most 768 --seeds 0..4 --jobs 2"});
  }
  Octaves tried_depths() const { return {static_cast<double>(first), ticks}; }

  EdgeSearch next_search() const {
    const Octaves at = tried_depths();
    const int lowest = at.lowest_whole(static_cast<double>(least_depth));
    const double octaves = std::log2(static_cast<double>(most) / static_cast<double>(first));
    return {.axis = depth.name(),
            .octaves = at,
            .lowest = lowest,
            .highest = static_cast<int>(std::floor(ticks * octaves + 1e-9)),
            .edges = EdgeSearch::Edges::upper,
            .value = [at](int tick) { return static_cast<std::int64_t>(std::lround(at.at(tick))); },
            // Tries a depth that is an octave smaller.
            .look = [lowest](const std::map<int, Share>& known) -> std::optional<int> {
              const int shallowest = known.begin()->first;
              if (shallowest <= lowest) return std::nullopt;
              return std::max(shallowest - ticks, lowest);
            }};
  }

  Section section_of(const StudyResults& r) const {
    using enum TextTable::Align;
    Section section{
        .title = "Largest depth at which most seeds train",
        .caption = fmt::format(
            "A network counts as trained if its final training loss is below {:g} of the chance loss. Brackets show "
            "the "
            "share of seeds that trained; the figure has Wilson's 95 % intervals. Published depths are for other data "
            "and sizes, in layers as each paper counts them.",
            trained.share)};
    for (const char* title : {"method", "trains to depth", "seeds that trained, by depth", "published"})
      section.table.column(title, left);
    Plot plot{.id = "share-by-depth",
              .title = "Share of seeds that train",
              .x = {.title = "depth, log scale", .log = true},
              .y = {.title = "share of seeds", .low = 0, .high = 1},
              .interval = PlotInterval::bars};
    for (const TrialGroup& place : r.groups(depth.name())) {
      const auto known = shares(place.trials, depth.name(), tried_depths());
      std::vector<std::string> tried;
      PlotSeries& series = plot.series.emplace_back(
          PlotSeries{.name = place.point.label(), .style = static_cast<int>(plot.series.size())});
      for (const auto& [tick, share] : known) {
        const long blocks = std::lround(tried_depths().at(tick));
        tried.push_back(fmt::format("{} ({})", blocks, to_string(share)));
        series.points.push_back({static_cast<double>(blocks), share.value(), share.low(), share.high()});
      }
      section.table.row({place.point.label(), limit_words(known, tried_depths(), most),
                         fmt::format("{}", fmt::join(tried, ", ")), published_depth(place.point[gate])});
    }
    section.charts.push_back(figure_of(plot));
    return section;
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::depth_limit(int argc, const char* const* argv) {
  vision::DepthLimit study;
  return study.run(argc, argv, [&](vision::Trial& trial) {
    nn::ViT model(vision::vit(trial));
    trial.train(model);
    study.trained.measure(trial);
  });
}
