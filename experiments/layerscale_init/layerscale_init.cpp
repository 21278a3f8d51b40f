// Does the initial value of LayerScale matter (Touvron et al. 2021, CaiT)? Each channel or each branch has a gate with
// initial value eps. Trials run with and without warm-up. With Adam, the first step moves every gate by about the
// learning rate, for any eps.
#include <algorithm>
#include <cmath>

#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// The mean of |gate - from| over the elements of all gates.
double mean_distance(const nn::Module& model, double from) {
  double sum = 0, count = 0;
  for (const nn::Parameter& p : model.parameters())
    if (p.role == nn::Role::gate)
      for (const double v : p.value.values()) sum += std::abs(v - from), ++count;
  return sum / count;
}

struct LayerScaleInit : Study {
  LayerScaleInit()
      : Study("layerscale_init", "Does the initial value of LayerScale matter? Does it survive Adam's first step?") {
    one_rate_for(epsilon);
    defaults({.steps = 300, .lr = 3e-3});
    cli().preset(
        "quick",
        "depth 12 on glyphs-clutter, three initial values, one gate per channel, one seed; a minute on two cores",
        {{"--data glyphs-clutter --depths 12 --gates layerscale --epsilons 0,1e-5,0.1"}});
    cli().preset("cpu",
                 "depths 12 and 24 on glyphs-clutter, four initial values, one rate for all values, 12 judged seeds; "
                 "one to two hours on two cores",
                 {{"--data glyphs-clutter --seeds 0..12 --epsilons 0,1e-5,0.1,1 --warmups 60"}});
    add_paper_preset(
        *this, "DeiT-S with LayerScale at depths 12, 18, 24 and 36 on ImageNet; needs --image-folder and GPUs",
        {{"--depths 12,18,24,36", "Touvron et al. 2021, CaiT, table 1"},
         {"--gates", "Touvron et al. 2021, CaiT: one gate per channel (LayerScale) or per branch (alpha = eps)"},
         {"--epsilons", "Touvron et al. 2021, CaiT: 0.1, 1e-5 and 1e-6 by depth, 0 as in ReZero; ours: the others"},
         {"--warmups 0,6255", "facebookresearch/deit, main.py: 5 epochs; ours: none"}});
    cli().examples({"--preset quick", "--preset cpu --jobs 2 --out runs/layerscale_init"});
    cli().derive([this] { state_claims(); });
    published(gate == "layerscale" && depth == 12 && epsilon == 0.1, val_accuracy, "80.5 % top-1 on ImageNet",
              "an author, facebookresearch/deit, issue 122");
    output([this](const StudyResults& r) {
      Section section{.title = "Training loss against eps",
                      .caption = "The dashed line is a start at 0, which a log scale cannot show."};
      for (const Condition& condition : r.conditions)
        for (const char* name : {"layerscale", "scalar_gate"}) {
          const Point where = depth == condition.depth && gate == name;
          const auto is_there = [&](const TrialResult& t) { return t.point.contains(where) && t.value(train_loss); };
          if (std::ranges::any_of(r.trials, is_there))
            section.charts.push_back(plot_of(r, {.value = train_loss,
                                                 .axis = epsilon.name(),
                                                 .where = where,
                                                 .title = fmt::format("{}, depth {}", name, condition.depth)}));
        }
      return section;
    });
    columns({train_loss, val_accuracy, "first_move", "gate_end"});
    measure_layers();
  }

  const Axis<std::int64_t> depth = depths({12, 24});
  const Axis<std::string> gate =
      axis("--gates", {"layerscale", "scalar_gate"}, "layerscale: one gate per channel; scalar_gate: one per branch")
          .one_of("gate", {"layerscale", "scalar_gate"});
  const Axis<double> epsilon =
      axis("--epsilons", {0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0}, "Initial values of the gates")
          .at_least(0)
          .at_most(10);
  const Axis<std::int64_t> warmup = axis<std::int64_t>("--warmups", {0, 60}, "Numbers of warm-up steps").at_least(0);

  // The claims are about the longest warm-up of the call.
  void state_claims() {
    const std::int64_t longest = std::ranges::max(warmup.values());
    control(gate == "layerscale" && epsilon == 0.1 && warmup == longest);
    const char* cait = "Touvron et al. 2021, CaiT";
    for (const int d : {12, 18, 24, 36, 48}) {
      const double rule = nn::layerscale_init(d);
      const Point at_depth = depth == d && warmup == longest, place = at_depth && gate == "layerscale";
      for (const char* name : {"layerscale", "scalar_gate"})
        claim(fmt::format("{} at depth {}: eps = {:g}, the rule's, trains better than 0", name, d, rule),
              name == std::string("scalar_gate") ? cait : "ours: CaiT says it of one gate a branch",
              lower(train_loss, epsilon == rule, epsilon == 0).at(at_depth && gate == name));
      if (d >= 24)
        claim(fmt::format("at depth {} and the rule's eps, one gate a channel trains better than one a branch", d),
              cait, lower(train_loss, gate == "layerscale", gate == "scalar_gate").at(at_depth && epsilon == rule));
      claim(fmt::format("at depth {} eps = 1 trains worse than the rule's {:g}", d, rule),
            "the same; large changes of eps matter: facebookresearch/deit, issue 127",
            higher(train_loss, epsilon == 1, epsilon == rule).at(place));
      claim(fmt::format("at depth {} eps = 1e-4 is as good as 1e-5, within 0.05", d),
            "small changes of eps matter little: facebookresearch/deit, issue 127",
            not_higher(train_loss, epsilon == 1e-4, epsilon == 1e-5, 0.05).at(place));
    }
    // Without a warm-up, Adam's first step moves a gate by the learning rate, which is above these values of eps in all
    // studies.
    for (const double eps : {1e-6, 1e-5})
      claim(fmt::format("without warm-up, the first step moves gates by more than eps = {:g}: eps is forgotten", eps),
            "Adam's first step moves a gate by the learning rate, with the sign of its gradient",
            above("first_move", 1, epsilon == eps && warmup == 0));
  }

  // Measures how far the first update moves the gates, in units of eps.
  void train(Trial& trial) const {
    const double eps = trial[epsilon];
    nn::ViT model(vit(
        trial, {.method = trial[gate] == "layerscale" ? nn::methods::layerscale(eps) : nn::methods::scalar_gate(eps)}));
    bool is_first = false;
    const auto after = [&](const Gradients&) {
      if (is_first && eps > 0) trial.measure({{"first_move", mean_distance(model, eps) / eps}});
    };
    trial.train(model, {.before = [&](std::int64_t step) { is_first = step == 0; }, .after = after});
    if (!trial.has_diverged()) trial.measure({{"gate_end", mean_distance(model, 0)}});
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::layerscale_init(int argc, const char* const* argv) { return run<vision::LayerScaleInit>(argc, argv); }
