// At which learning rates does each method train, at each depth? The edges of the region are traced by bisection, rate by rate, instead of a full
// grid: from a rate that trains up to where networks diverge or stay at chance, and down to where the steps do not suffice. One number a method: how
// many octaves of rates train, mean over the depths.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/common/boundary.h"
#include "experiments/common/statistics.h"
#include "experiments/common/study.h"
#include "nn/audit.h"

using namespace plumb;

namespace {

constexpr int ticks = 2;                 // to an octave
constexpr int span = 7 * ticks;          // the map ends seven octaves above and below the first rate
constexpr int looks[] = {4, -4, 8, -8};  // where to look for a rate that trains, if the first does not

using Known = std::map<int, lab::Share>;

// A rate that trains, the one nearest to the first.
std::optional<int> foothold(const Known& known) {
  std::optional<int> best;
  for (const auto& [tick, share] : known)
    if (share.most() && (!best || std::abs(tick) < std::abs(*best))) best = tick;
  return best;
}

struct Width {
  double octaves = 0;
  bool open = false;  // an edge lies beyond the map
};

// How far the rates at which most seeds train reach: from edge to edge, each taken half way between inside and outside.
Width width_of(const Known& known) {
  const std::optional<int> from = foothold(known);
  if (!from) return {};
  const auto above = lab::edge_above(known, *from), below = lab::edge_below(known, *from);
  const double top = above->outside ? 0.5 * (above->inside + *above->outside) : above->inside;
  const double bottom = below->outside ? 0.5 * (below->inside + *below->outside) : below->inside;
  return {(top - bottom) / ticks, !above->outside || !below->outside};
}

std::string rate_words(const std::optional<lab::Edge>& edge, const lab::Octaves& rates) {
  if (!edge) return "–";
  return edge->outside ? fmt::format("{:.2g}", std::sqrt(rates.at(edge->inside) * rates.at(*edge->outside)))
                       : fmt::format("beyond {:.2g}", rates.at(edge->inside));
}

}  // namespace

int main(int argc, char** argv) {
  lab::Study study("stability_map", "At which learning rates and depths does each method train?");
  const auto gate = study.axis<std::string>("--gates", {"post", "pre", "rezero", "fixup", "layerscale", "deepnorm"}, "Methods to compare")
                        .one_of("method", nn::gate_names());
  const auto depth = study.axis<int>("--depths", {6, 24}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  study.searched<double>("lr");
  double first_lr = 1e-3, trained_at = 0.6;  // glyphs: a linear model ends at 0.65 of chance
  lab::Cli& cli = study.cli();
  cli.section("Search");
  cli.option("--first-lr", &first_lr, "The learning rate that is tried first").above(0);
  cli.option("--trained-at", &trained_at, "A network trains where its training loss ends below this share of chance").above(0).below(1);
  study.options().steps = 300, study.options().seeds = {0, 1, 2}, study.options().stop_hopeless = true;
  study.network().dim = 32;
  cli.preset("quick", "two methods at depths 2 and 8, one seed: two minutes on two cores", [&] {
    gate.set({"post", "pre"}), depth.set({2, 8});
    study.options().steps = 200, study.options().seeds = {0};
  });
  cli.preset("cpu", "six methods at depths 6, 12, 24 and 48, three seeds: hours on two cores", [&] { depth.set({6, 12, 24, 48}); });
  cli.example("--preset quick");
  cli.example("--gates post,deepnorm --depths 12,48 --seeds 0..4 --jobs 2");

  const auto rates = [&] { return lab::Octaves{first_lr, ticks}; };
  study.search([&](const lab::Search& search) {
    std::vector<lab::Point> next;
    const auto ask = [&](int tick) { next.push_back({{"lr", tick == 0 ? first_lr : std::stod(fmt::format("{:.2g}", rates().at(tick)))}}); };
    const Known known = lab::shares(search.so_far, "lr", rates());
    if (known.empty()) {
      ask(0);
    } else if (const std::optional<int> from = foothold(known)) {
      if (const auto tick = lab::next_above(known, *from, rates(), span)) ask(*tick);
      if (const auto tick = lab::next_below(known, *from, rates(), -span)) ask(*tick);
    } else {
      const auto look = std::ranges::find_if(looks, [&](int tick) { return !known.contains(tick); });
      if (look != std::end(looks)) ask(*look);
    }
    return next;
  });
  study.section([&](const lab::StudyResults& r) {
    using enum lab::TextTable::Align;
    lab::Section section{
        .title = "Where each method trains",
        .caption =
            fmt::format("Edges of the rates at which most seeds end below {:g} of chance, half way between the last inside and the first outside; "
                        "octaves: how many doublings lie between. Above the upper edge networks diverge or stay at chance; below the lower one "
                        "these steps do not suffice.",
                        trained_at)};
    section.table.column("method", left);
    for (const int d : depth.values()) section.table.column(fmt::format("depth {}", d), left);
    section.table.column("octaves, mean over depths", right);
    lab::Plot plot{.id = "edges",
                   .title = "Edges by depth",
                   .x = {.title = "depth, log scale", .log = true},
                   .y = {.title = "learning rate, log scale", .log = true}};
    int style = 0;
    for (const std::string& name : gate.values()) {
      std::vector<std::string> row{name};
      std::vector<double> octaves;
      bool open = false;
      lab::PlotSeries upper{.name = name, .style = style}, lower = upper;
      for (const int d : depth.values()) {
        std::vector<const lab::Record*> arms;
        for (const lab::Record& record : r.records)
          if (record.point.contains({{"gate", name}, {"depth", d}})) arms.push_back(&record);
        if (arms.empty()) {
          row.emplace_back("–");
          continue;
        }
        const Known known = lab::shares(arms, "lr", rates());
        const std::optional<int> from = foothold(known);
        const auto above = from ? lab::edge_above(known, *from) : std::nullopt, below = from ? lab::edge_below(known, *from) : std::nullopt;
        const Width width = width_of(known);
        octaves.push_back(width.octaves), open = open || width.open;
        row.push_back(from ? fmt::format("{} to {}", rate_words(below, rates()), rate_words(above, rates())) : "none tried trains");
        if (above)
          upper.points.push_back({static_cast<double>(d), std::sqrt(rates().at(above->inside) * rates().at(above->outside.value_or(above->inside)))});
        if (below)
          lower.points.push_back({static_cast<double>(d), std::sqrt(rates().at(below->inside) * rates().at(below->outside.value_or(below->inside)))});
      }
      row.push_back(octaves.empty() ? "–" : fmt::format("{}{:.1f}", open ? "at least " : "", lab::summarize(octaves).mean));
      section.table.row(std::move(row));
      plot.series.push_back(std::move(upper)), plot.series.push_back(std::move(lower));
      ++style;
    }
    section.charts.push_back(std::move(plot));
    return section;
  });
  study.columns({"trained", "train_loss", "val_accuracy", "diverged_at"});
  study.show({"train_loss", "val_accuracy"});
  return study.run(argc, argv, [&](lab::Arm& arm) {
    nn::ViT model(arm.vit({.depth = arm[depth], .gate = arm[gate]}));
    nn::audit_init(model, arm.seed());
    arm.train(model);
    if (!arm.has_diverged())
      arm.measure({{"trained", arm.recent_loss() < trained_at * std::log(static_cast<double>(arm.data().train.classes)) ? 1.0 : 0.0}});
  });
}
