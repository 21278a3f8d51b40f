// How deep does each method train? The search doubles the depth until most seeds fail to train, then bisects the
// interval until the interval is a quarter of an octave wide. Hopeless trials are stopped half way.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/lab/plot/draw.h"
#include "experiments/vision/edge_study.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

constexpr int ticks = 4;  // number of ticks per octave; neighbouring depths differ by 19 %
constexpr double least_depth = 4;

// Depths that papers report. The papers use other sizes and lengths of training.
std::string published_depth(const std::string& gate) {
  if (gate == "rezero") return "128 layers (majumderb/rezero)";
  if (gate == "deepnorm") return "1,000 layers (Wang et al. 2022, abstract, as a secondary text reports it)";
  if (gate == "fixup") return "10,000 layers (Zhang, Dauphin, Ma 2019, abstract, as a secondary text reports it)";
  if (gate == "skipinit") return "1,000 layers (De, Smith 2020, as a secondary text reports it)";
  return "–";
}

// The result of a search in words.
std::string limit_words(const std::map<int, Share>& known, const Octaves& depths) {
  const auto depth = [&](int tick) { return std::lround(depths.at(tick)); };
  const auto trains = std::ranges::find_if(known, [](const auto& k) { return k.second.most(); });
  if (trains == known.end()) return fmt::format("none ({} was the lowest tried)", depth(known.begin()->first));
  const auto edge = edge_above(known, trains->first);
  if (!edge->outside) return fmt::format("{0} or more ({0} was the deepest tried)", depth(edge->inside));
  return fmt::format("{}, not {}", depth(edge->inside), depth(*edge->outside));
}

struct DepthLimit : EdgeStudy {
  DepthLimit() : EdgeStudy("depth_limit", "How deep can a network be for each method to still train it?") {
    cli().section("Search");
    cli().option("--first", &first, "The first depth to try, in blocks").at_least(least_depth).at_most(largest_size);
    cli()
        .option("--most", &most, "The largest depth to try, in blocks")
        .at_least(least_depth)
        .at_most(largest_size)
        .scope(Scope::study);
    search_edges([this] { return next_search(); }, [this](const StudyResults& r) { return section_of(r); });
    cli().rule([this] { usage_check(first <= most, "--first {} is larger than --most {}", first, most); });
    cli().preset("quick", "three methods up to depth 48, 200 steps, one seed; three minutes on two cores",
                 {{"--gates post,pre,rezero --steps 200 --seeds 0 --most 48"}});
    cli().preset("cpu", "six methods up to depth 384 at two learning rates, five seeds; two hours on two cores",
                 {{"--most 384 --lrs 0.001,0.003 --seeds 0..4"}});
    add_search_preset(*this, {{"--most 768", "ours"}, {"--first", "DeiT-S"}});
    cli().examples({"--preset quick", "--gates post,deepnorm --most 768 --seeds 0..4 --jobs 2"});
  }

  const Axis<double> lr = learning_rates({3e-3});
  const Axis<std::int64_t> depth = searched<std::int64_t>("depth");
  std::int64_t first = 12, most = 192;

  Octaves tried_depths() const { return {static_cast<double>(first), ticks}; }

  EdgeSearch next_search() const {
    const Octaves at = tried_depths();
    const int lowest = at.lowest_whole(least_depth);
    const double octaves = std::log2(static_cast<double>(most) / static_cast<double>(first));
    return {.axis = depth.name(),
            .octaves = at,
            .lowest = lowest,
            .highest = static_cast<int>(std::floor(ticks * octaves + 1e-9)),
            .edges = EdgeSearch::Edges::upper,
            .value = [at](int tick) { return static_cast<std::int64_t>(std::lround(at.at(tick))); },
            // Tries a depth that is an octave smaller.
            .look =
                [lowest](const std::map<int, Share>& known) {
                  const int shallowest = known.begin()->first;
                  return shallowest > lowest ? std::optional(std::max(shallowest - ticks, lowest)) : std::nullopt;
                }};
  }

  Section section_of(const StudyResults& r) const {
    using enum TextTable::Align;
    Section section{.title = "Largest depth at which most seeds train",
                    .caption = fmt::format(
                        "A network counts as trained if its final training loss is below {:g} of the chance loss. "
                        "Brackets show the share of seeds that trained; the figure has Wilson's 95 % intervals. "
                        "Published depths are for other data and sizes, in layers as each paper counts them.",
                        trained.share)};
    for (const char* title : {"method", "trains to depth", "seeds that trained, by depth", "published"})
      section.table.column(title, left);
    Plot plot{.id = "share-by-depth",
              .title = "Share of seeds that train",
              .x = {.title = "depth, log scale", .log = true},
              .y = {.title = "share of seeds", .low = 0, .high = 1},
              .interval = PlotInterval::bars};
    std::map<int, std::vector<std::string>> deepest;  // the methods by the last tick at which they train
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
      const std::string limit = limit_words(known, tried_depths());
      if (const auto trains = std::ranges::find_if(known, [](const auto& k) { return k.second.most(); });
          trains != known.end()) {
        const int last = edge_above(known, trains->first)->inside;
        deepest[last].push_back(place.point.label());
        if (last == deepest.rbegin()->first)
          section.answer = fmt::format("Trains deepest: {}, to depth {}.", fmt::join(deepest[last], "; "), limit);
      }
      section.table.row(
          {place.point.label(), limit, fmt::format("{}", fmt::join(tried, ", ")), published_depth(place.point[gate])});
    }
    if (deepest.empty()) section.answer = "No method trains at a tried depth.";
    section.charts.push_back(figure_of(plot));
    return section;
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::depth_limit(int argc, const char* const* argv) { return run<vision::DepthLimit>(argc, argv); }
