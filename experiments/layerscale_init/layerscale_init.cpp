// Does the initial value of LayerScale matter (Touvron et al. 2021, CaiT)? Each channel or each branch has a gate with
// initial value eps. Trials run with and without warm-up. With Adam, the first step moves every gate by about the
// learning rate, for any eps.
#include "experiments/programs.h"

#include <algorithm>
#include <cmath>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/gates/layerscale.h"
#include "nn/gates/methods.h"

using namespace plumb;

namespace {

// The mean of |gate - from| over the elements of all gates.
double mean_distance(const nn::Module& model, double from) {
  double sum = 0, count = 0;
  for (const nn::Parameter& p : model.parameters())
    if (p.role == nn::Role::gate)
      for (const double v : p.value.values()) sum += std::abs(v - from), ++count;
  return sum / count;
}

// Measures how far the first update moves the gates, in units of eps. Also records the layers.
lab::AroundStep watch(lab::Trial& trial, nn::ViT& model, double epsilon) {
  return [&trial, &model, epsilon, layers = lab::record_layers(trial, model.stack())](
             std::int64_t step) -> std::function<void(const Gradients&)> {
    const auto after = layers(step);
    if (step > 0 || epsilon == 0) return after;
    return [&trial, &model, epsilon, after](const Gradients& g) {
      if (after) after(g);
      trial.measure({{"first_move", mean_distance(model, epsilon) / epsilon}});
    };
  };
}

}  // namespace

int plumb::lab::layerscale_init(int argc, const char* const* argv) {
  vision::Study study("layerscale_init",
                      "Does the initial value of LayerScale matter? Does it survive Adam's first step?");
  const auto depth =
      study.axis<int>("--depths", {12, 24}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  const auto gate = study
                        .axis<std::string>("--gates", {"layerscale", "scalar_gate"},
                                           "layerscale: one gate per channel; scalar_gate: one per branch")
                        .one_of("gate", {"layerscale", "scalar_gate"});
  const auto epsilon =
      study.axis<double>("--epsilons", {0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1}, "Initial values of the gates")
          .at_least(0)
          .at_most(10);
  const auto warmup = study.axis<std::int64_t>("--warmups", {0, 60}, "Numbers of warm-up steps").at_least(0);
  study.one_rate_for(epsilon);
  study.options().steps = 300;
  study.optimization().lr = 3e-3;
  study.cli().preset(
      "quick",
      "depth 12 on glyphs-clutter, three initial values, one gate per channel, one seed; a minute on two cores", [&] {
        study.images().data = "glyphs-clutter";
        depth.set({12}), gate.set({"layerscale"}), epsilon.set({0, 1e-5, 0.1});
      });
  study.cli().preset("cpu",
                     "depths 12 and 24 on glyphs-clutter, four initial values, one rate for all values, 12 judged "
                     "seeds; one to two hours on two cores",
                     [&] {
                       study.images().data = "glyphs-clutter", study.options().judge_seeds(12);
                       epsilon.set({0, 1e-5, 0.1, 1}), warmup.set({60});
                     });
  study.cli().preset(
      "paper", "DeiT-S with LayerScale at depths 12, 18, 24 and 36 on ImageNet; needs --image-folder and GPUs", [&] {
        vision::set_deit_small(study, [gate] { return gate.values(); });
        depth.set({12, 18, 24, 36});
        vision::explain(study, "--depths", "Touvron et al. 2021, CaiT, table 1");
        vision::explain(study, "--gates",
                        "Touvron et al. 2021, CaiT: one gate per channel (LayerScale) or per branch (alpha = eps)");
        vision::explain(study, "--epsilons",
                        "Touvron et al. 2021, CaiT: 0.1, 1e-5 and 1e-6 by depth, 0 as in ReZero; ours: the others");
        warmup.set({0, 6255});
        vision::explain(study, "--warmups", "facebookresearch/deit, main.py: 5 epochs; ours: none");
      });
  study.cli().example("--preset quick");
  study.cli().example("--preset cpu --jobs 2 --out runs/layerscale_init");

  study.cli().derive([&] {
    const std::int64_t longest = std::ranges::max(warmup.values());
    study.judging().control = fmt::format("layerscale epsilon 0.1 warmup {}", longest);
    const char* cait = "Touvron et al. 2021, CaiT";
    for (const int d : {12, 18, 24, 36, 48}) {
      const double rule = nn::layerscale_init(d);
      for (const char* name : {"layerscale", "scalar_gate"})
        study.claim(fmt::format("{} at depth {}: eps = {:g}, the rule's, trains better than 0", name, d, rule),
                    name == std::string("scalar_gate") ? cait : "ours: CaiT says it of one gate a branch",
                    lab::lower("train_loss", {{"epsilon", rule}}, {{"epsilon", 0.0}})
                        .at({{"depth", d}, {"gate", name}, {"warmup", longest}}));
      if (d >= 24)
        study.claim(
            fmt::format("at depth {} and the rule's eps, one gate a channel trains better than one a branch", d), cait,
            lab::lower("train_loss", {{"gate", "layerscale"}}, {{"gate", "scalar_gate"}})
                .at({{"depth", d}, {"epsilon", rule}, {"warmup", longest}}));
      study.claim(fmt::format("at depth {} eps = 1 trains worse than the rule's {:g}", d, rule),
                  "the same; large changes of eps matter: facebookresearch/deit, issue 127",
                  lab::higher("train_loss", {{"epsilon", 1.0}}, {{"epsilon", rule}})
                      .at({{"depth", d}, {"gate", "layerscale"}, {"warmup", longest}}));
      study.claim(fmt::format("at depth {} eps = 1e-4 is as good as 1e-5, within 0.05", d),
                  "small changes of eps matter little: facebookresearch/deit, issue 127",
                  lab::not_higher("train_loss", {{"epsilon", 1e-4}}, {{"epsilon", 1e-5}}, 0.05)
                      .at({{"depth", d}, {"gate", "layerscale"}, {"warmup", longest}}));
    }
    // Without a warm-up, Adam's first step moves a gate by the learning rate, which is above these values of eps in all
    // studies.
    for (const double eps : {1e-6, 1e-5})
      study.claim(
          fmt::format("without warm-up, the first step moves gates by more than eps = {:g}: eps is forgotten", eps),
          "Adam's first step moves a gate by the learning rate, with the sign of its gradient",
          lab::above("first_move", 1, {{"epsilon", eps}, {"warmup", 0}}));
  });
  study.published({{"gate", "layerscale"}, {"depth", 12}, {"epsilon", 0.1}}, "val_accuracy", "80.5 % top-1 on ImageNet",
                  "an author, facebookresearch/deit, issue 122");
  study.output([](const lab::StudyResults& r) {
    lab::Section section{.title = "Training loss against eps",
                         .caption = "The dashed line is a start at 0, which a log scale cannot show."};
    for (const lab::Condition& condition : r.conditions)
      for (const char* name : {"layerscale", "scalar_gate"}) {
        lab::Plot plot = lab::plot_of(r, {.value = "train_loss",
                                          .axis = "epsilon",
                                          .where = {{"depth", condition.depth}, {"gate", name}},
                                          .title = fmt::format("{}, depth {}", name, condition.depth)});
        if (!plot.series.empty()) section.charts.push_back(std::move(plot));
      }
    return section;
  });
  study.columns({"train_loss", "val_accuracy", "first_move", "gate_end"});
  study.show({"train_loss", "val_accuracy", "first_move", "gate_end"});
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    const double eps = trial[epsilon];
    nn::ViT model(vision::vit(
        trial, {.depth = trial[depth],
                .gate = trial[gate] == "layerscale" ? nn::methods::layerscale(eps) : nn::methods::scalar_gate(eps)}));
    trial.train(model, watch(trial, model, eps));
    if (!trial.has_diverged()) trial.measure({{"gate_end", mean_distance(model, 0)}});
  });
}
