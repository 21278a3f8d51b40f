// At which learning rates does each method train, at each depth? These rates form a region with an upper and a lower
// edge. The program does not train a full grid, but bisects the edges. The search starts at a learning rate that
// trains. Above the upper edge, networks diverge or stay at chance. Below the lower edge, the steps do not suffice.
// Each method gets one number: the width of its region in octaves, as a mean over the depths.
#include "experiments/programs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/stats/summary.h"
#include "experiments/lab/study/edge_search.h"
#include "experiments/lab/train/trained_at.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"

using namespace plumb;

namespace {

constexpr int rates_per_octave = 2;
constexpr int span = 7 * rates_per_octave;  // the map ends seven octaves above and below the first learning rate
// The order of the search for a learning rate that trains, if the first rate does not train. At the end of this order,
// neighbouring rates are one octave apart.
constexpr int looks[] = {4, -4, 8, -8, 2, -2, 6, -6};

using Known = std::map<int, lab::Share>;

std::string rate_words(const std::optional<lab::Edge>& edge, const lab::Octaves& rates) {
  if (!edge) return "–";
  return edge->outside ? fmt::format("{:.2g}", rates.at(edge->middle()))
                       : fmt::format("beyond {:.2g}", rates.at(edge->inside));
}

}  // namespace

int plumb::lab::stability_map(int argc, const char* const* argv) {
  vision::Study study("stability_map", "At which learning rates and depths does each method train?");
  const auto gate = study
                        .axis<std::string>("--gates", {"post", "pre", "rezero", "fixup", "layerscale", "deepnorm"},
                                           "Methods to compare")
                        .one_of_methods("method");
  const auto depth =
      study.axis<int>("--depths", {6, 24}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  study.searched<double>("lr");
  double first_lr = 1e-3;
  lab::TrainedAt trained;
  lab::Cli& cli = study.cli();
  cli.section("Search");
  cli.option("--first-lr", &first_lr, "The first learning rate to try").above(0);
  trained.declare(cli, [&study] { return study.augmentation().any(); });
  study.options().steps = 300, study.options().seeds = {0, 1, 2}, study.options().stop_hopeless = true;
  study.network().dim = 32;
  study.network().recipe = vision::RecipeKind::paper,
  study.network().weight_init =
      vision::WeightInit::xavier;  // all methods train fast with Xavier weights, so a failure is not just slow training
  cli.preset("quick", "two methods at depths 2 and 8, one seed; two minutes on two cores", [&] {
    gate.set({"post", "pre"}), depth.set({2, 8});
    study.options().steps = 200, study.options().seeds = {0};
  });
  cli.preset("cpu", "six methods at depths 6, 12, 24 and 48, three seeds; an hour on two cores", [&] {
    depth.set({6, 12, 24, 48});
  });
  cli.preset("paper",
             "DeiT-S's size on ImageNet for a twentieth of its epochs (no paper has this search); needs "
             "--image-folder and GPUs",
             [&] {
               vision::set_deit_small_for_search(study, [gate] { return gate.values(); });
               first_lr = study.optimization().lr;
               depth.set({12, 24, 36, 48});
               vision::explain(study, "--depths", "ours: from DeiT-S to the deepest CaiT");
               vision::explain(study, "--first-lr", "facebookresearch/deit, main.py: 5e-4 x batch / 512");
             });
  cli.example("--preset quick");
  cli.example("--gates post,deepnorm --depths 12,48 --seeds 0..4 --jobs 2");

  const auto rates = [&] { return lab::Octaves{first_lr, rates_per_octave}; };
  study.search(lab::edge_search([&] {
    return lab::EdgeSearch{
        .axis = "lr",
        .octaves = rates(),
        .lowest = -span,
        .highest = span,
        .edges = lab::EdgeSearch::Edges::both,
        .value = [&](int tick) { return tick == 0 ? first_lr : lab::rounded_to(rates().at(tick), 2); },
        .look = [](const Known& known) -> std::optional<int> {
          const auto look = std::ranges::find_if(looks, [&](int tick) { return !known.contains(tick); });
          if (look == std::end(looks)) return std::nullopt;
          return *look;
        }};
  }));
  study.output([&](const lab::StudyResults& r) {
    using enum lab::TextTable::Align;
    lab::Section section{
        .title = "Where each method trains",
        .caption = fmt::format("Lower and upper edge of the learning rates at which most seeds end below {:g} of "
                               "the chance loss: the middle between the last tried inside and the "
                               "first outside. octaves: number of doublings between the edges. Above "
                               "the upper edge networks diverge or stay at chance; below the lower "
                               "edge the steps do not suffice. If no tried rate trains, a region of "
                               "less than an octave may have been missed; it counts as 0.",
                               trained.share)};
    section.table.column("method", left);
    for (const int d : depth.values()) section.table.column(fmt::format("depth {}", d), left);
    section.table.column("octaves, mean over depths", right);
    lab::Plot plot{.id = "edges",
                   .title = "Edges by depth",
                   .x = {.title = "depth, log scale", .log = true},
                   .y = {.title = "learning rate, log scale", .log = true}};
    const std::vector<lab::TrialGroup> places = r.groups("lr");
    int style = 0;
    for (const std::string& name : gate.values()) {
      std::vector<std::string> row{name};
      std::vector<double> octaves;
      bool open = false;
      lab::PlotSeries upper{.name = name, .style = style}, lower = upper;
      for (const int d : depth.values()) {
        const auto place = std::ranges::find_if(places, [&](const auto& p) {
          return p.point.contains({{"gate", name}, {"depth", d}});
        });
        if (place == places.end()) {
          row.emplace_back("–");
          continue;
        }
        const Known known = lab::shares(place->trials, "lr", rates());
        const std::optional<int> from = lab::foothold(known);
        const auto above = from ? lab::edge_above(known, *from) : std::nullopt,
                   below = from ? lab::edge_below(known, *from) : std::nullopt;
        const lab::Width width = lab::width_of(known, rates());
        octaves.push_back(width.octaves), open = open || width.open;
        row.push_back(from ? fmt::format("{} to {}", rate_words(below, rates()), rate_words(above, rates()))
                           : "none of those tried");
        if (above) upper.points.push_back({static_cast<double>(d), rates().at(above->middle())});
        if (below) lower.points.push_back({static_cast<double>(d), rates().at(below->middle())});
      }
      row.push_back(octaves.empty() ? "–"
                                    : fmt::format("{}{:.1f}", open ? "at least " : "", lab::summarize(octaves).mean));
      section.table.row(std::move(row));
      plot.series.push_back(std::move(upper)), plot.series.push_back(std::move(lower));
      ++style;
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
