// At which learning rates does each method train, at each depth? These rates form a region with an upper and a lower
// edge. The program does not train a full grid, but bisects the edges. The search starts at a learning rate that
// trains. Above the upper edge, networks diverge or stay at chance. Below the lower edge, the steps do not suffice.
// Each method gets one number: the width of its region in octaves, as a mean over the depths.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/stats/summary.h"
#include "experiments/vision/edge_study.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

constexpr int rates_per_octave = 2;
constexpr int span = 7 * rates_per_octave;  // the map ends seven octaves above and below the first learning rate
// The order of the search for a learning rate that trains, if the first rate does not train. At the end of this order,
// neighbouring rates are one octave apart.
constexpr int looks[] = {4, -4, 8, -8, 2, -2, 6, -6};

using Known = std::map<int, Share>;

std::string rate_words(const Edge& edge, const Octaves& rates) {
  return fmt::format("{}{:.2g}", edge.outside ? "" : "beyond ", rates.at(edge.middle()));
}

struct StabilityMap : EdgeStudy {
  StabilityMap() : EdgeStudy("stability_map", "At which learning rates and depths does each method train?") {
    cli().section("Search");
    cli().option("--first-lr", &first_lr, "The first learning rate to try").above(0);
    search_edges([this] { return next_search(); }, [this](const StudyResults& r) { return section_of(r); });
    cli().preset("quick", "two methods at depths 2 and 8, one seed; two minutes on two cores",
                 {{"--gates post,pre --depths 2,8 --steps 200 --seeds 0"}});
    cli().preset("cpu", "six methods at depths 6, 12, 24 and 48, three seeds; an hour on two cores",
                 {{"--depths 6,12,24,48"}});
    add_search_preset(*this, {{"--depths 12,24,36,48", "ours: from DeiT-S to the deepest CaiT"},
                              {"--first-lr 0.001", "facebookresearch/deit, main.py: 5e-4 x batch / 512"}});
    cli().examples({"--preset quick", "--gates post,deepnorm --depths 12,48 --seeds 0..4 --jobs 2"});
  }

  const Axis<std::int64_t> depth = depths({6, 24});
  const Axis<double> lr = searched<double>("lr");
  double first_lr = 1e-3;

  Octaves rates() const { return {first_lr, rates_per_octave}; }

  EdgeSearch next_search() const {
    return {.axis = lr.name(),
            .octaves = rates(),
            .lowest = -span,
            .highest = span,
            .edges = EdgeSearch::Edges::both,
            .value = [this](int tick) { return tick == 0 ? first_lr : rounded_to(rates().at(tick), 2); },
            .look =
                [](const Known& known) {
                  const auto look = std::ranges::find_if(looks, [&](int tick) { return !known.contains(tick); });
                  return look == std::end(looks) ? std::nullopt : std::optional(*look);
                }};
  }

  Section section_of(const StudyResults& r) const {
    using enum TextTable::Align;
    Section section{
        .title = "Where each method trains",
        .caption = fmt::format(
            "Lower and upper edge of the learning rates at which most seeds end below {:g} of the chance loss: the "
            "middle between the last tried inside and the first outside. octaves: number of doublings between the "
            "edges. Above the upper edge networks diverge or stay at chance; below the lower edge the steps do not "
            "suffice. If no tried rate trains, a region of less than an octave may have been missed; it counts as 0.",
            trained.share)};
    section.table.column("method", left);
    for (const std::int64_t d : depth.values()) section.table.column(fmt::format("depth {}", d), left);
    section.table.column("octaves, mean over depths", right);
    Plot plot{.id = "edges",
              .title = "Edges by depth",
              .x = {.title = "depth, log scale", .log = true},
              .y = {.title = "learning rate, log scale", .log = true}};
    const std::vector<TrialGroup> places = r.groups(lr.name());
    std::vector<std::tuple<double, bool, std::string>> ranges;  // mean octaves, whether wider than tried, method
    for (const std::string& name : gate.values()) {
      std::vector<std::string> row{name};
      std::vector<double> octaves;
      bool open = false;
      PlotSeries upper{.name = name, .style = static_cast<int>(plot.series.size() / 2)}, lower = upper;
      for (const std::int64_t d : depth.values()) {
        const auto place = std::ranges::find_if(
            places, [&](const TrialGroup& p) { return p.point.contains(gate == name && depth == d); });
        if (place == places.end()) {
          row.emplace_back("–");
          continue;
        }
        const auto [width, is_open, below, above] = region_of(shares(place->trials, lr.name(), rates()), rates());
        octaves.push_back(width);
        open = open || is_open;
        row.push_back(above ? fmt::format("{} to {}", rate_words(*below, rates()), rate_words(*above, rates()))
                            : "none of those tried");
        if (above) upper.points.push_back({static_cast<double>(d), rates().at(above->middle())});
        if (below) lower.points.push_back({static_cast<double>(d), rates().at(below->middle())});
      }
      if (!octaves.empty()) ranges.emplace_back(summarize(octaves).mean, open, name);
      row.push_back(octaves.empty() ? "–" : fmt::format("{}{:.1f}", open ? "at least " : "", summarize(octaves).mean));
      section.table.row(std::move(row));
      plot.series.push_back(std::move(upper)), plot.series.push_back(std::move(lower));
    }
    // Methods whose range has no known end may all have the widest one.
    std::ranges::sort(ranges, std::greater());
    std::vector<std::string> widest;
    for (const auto& [octaves, open, name] : ranges)
      if (octaves > 0 && (open || widest.empty() || octaves == std::get<0>(ranges.front())))
        widest.push_back(fmt::format("{} ({}{:.1f})", name, open ? "at least " : "", octaves));
    if (!widest.empty())
      section.answer =
          fmt::format("Train{} at the widest range of learning rates, in octaves as a mean over depths: {}.",
                      widest.size() == 1 ? "s" : "", fmt::join(widest, ", "));
    section.charts.push_back(figure_of(plot));
    return section;
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::stability_map(int argc, const char* const* argv) { return run<vision::StabilityMap>(argc, argv); }
