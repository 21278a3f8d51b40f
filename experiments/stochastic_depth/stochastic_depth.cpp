// Which rate of stochastic depth is best (Huang et al. 2016)? Should the rate be the same for all layers or grow with
// depth? CaiT found no benefit of a growing rate. DeiT uses a growing rate.
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

struct StochasticDepth : Study {
  StochasticDepth()
      : Study("stochastic_depth",
              "Which rate of stochastic depth is best, and is a uniform rate as good as one that grows with depth?") {
    // Without dropping, all schedules are equal, so only the first schedule is trained.
    only([this](const Point& p) { return p[rate] > 0 || schedule.has_usual(p); });
    control(rate == 0 && schedule == DropPathSchedule::uniform);
    cli().section("Model");
    cli().option("--gate", &gate, "Residual method").one_of_methods();
    defaults({.steps = 600, .warmup = 30, .lr = 1e-3});
    one_rate_for(schedule);
    choose_rates_by(val_accuracy, Better::higher);
    cli().preset("quick", "depth 12, two rates on glyphs-few, one seed; a minute on two cores",
                 {{"--data glyphs-few --depths 12 --drop-paths 0,0.1 --steps 300"}});
    cli().preset("cpu",
                 "depths 12 and 24 on 5,000 images of CIFAR-100, few enough to need regularisation, each drop rate at "
                 "its own learning rate, 12 judged seeds; three to six hours on two cores; needs --data-dir",
                 {{"--data cifar-100 --train-images 5000 --seeds 0..12 --depths 12,24 --drop-paths 0,0.1,0.2"},
                  {"--steps 1000 --warmup 100"}});
    add_paper_preset(
        *this, "DeiT-S with LayerScale at depths 12 to 36 on ImageNet; needs --image-folder and GPUs",
        {{"--depths 12,18,24,36", "Touvron et al. 2021, CaiT, table 1"},
         {"--drop-paths 0,0.05,0.1,0.2,0.25",
          "facebookresearch/deit: 0.1, and 0.2 best at 24 blocks (issue 218); 0.05 at 12 as a secondary text reports; "
          "ours: 0 and 0.25"},
         {"--drop-path-schedules", "uniform: Touvron et al. 2021, CaiT; linear: facebookresearch/deit, models.py"},
         {"--gate", "Touvron et al. 2021, CaiT"}});
    cli().examples({"--preset quick", "--drop-paths 0,0.3 --depths 24,48 --gate pre --seeds 0..2"});
    using enum DropPathSchedule;
    for (const int d : {6, 12, 18, 24, 36})
      for (const double p : {0.05, 0.1, 0.2, 0.25}) {
        claim(fmt::format("depth {}, rate {:g}: uniform is as good as linear, within a quarter of a point", d, p),
              "Touvron et al. 2021, CaiT: no benefit of linear",
              not_lower(val_accuracy, schedule == uniform, schedule == linear, 0.0025).at(depth == d && rate == p));
        claim(fmt::format("depth {}: a uniform rate of {:g} is better than none", d, p),
              "Huang et al. 2016, of rates tuned by depth",
              higher(val_accuracy, rate == p, rate == 0).at(depth == d && schedule == uniform));
      }
    // If both schedules have the same rate in the last block, the linear schedule drops half as much as the uniform
    // one.
    for (const int d : {6, 12, 18, 24, 36})
      for (const double p : {0.05, 0.1})
        claim(
            fmt::format(
                "depth {}: uniform {:g} is as good as linear to {:g}, which drops as much, within a quarter of a point",
                d, p, 2 * p),
            "ours",
            not_lower(val_accuracy, schedule == uniform && rate == p, schedule == linear && rate == 2 * p, 0.0025)
                .at(depth == d));
    const auto uniform_at = [this](int d, double p) { return depth == d && rate == p && schedule == uniform; };
    published(uniform_at(24, 0.2), val_accuracy, "81.0 % top-1 on ImageNet, the best rate (without LayerScale)",
              "an author, facebookresearch/deit, issue 218");
    published(uniform_at(12, 0.05), val_accuracy, "79.9 % top-1 on ImageNet (without LayerScale)",
              "CaiT, as a secondary text reports table 1");
    output([this](const StudyResults& r) {
      return Section{
          .title = "Accuracy and loss by rate",
          .charts = {plot_of(r, {.value = val_accuracy, .axis = rate.name(), .title = "Validation accuracy"}),
                     plot_of(r, {.value = train_loss, .axis = rate.name(), .title = "Training loss"})}};
    });
    measure_layers();
    columns({train_loss, val_loss, val_accuracy});
  }

  const Axis<std::int64_t> depth = depths({6, 12, 24});
  const Axis<double> rate =
      axis("--drop-paths", {0.0, 0.05, 0.1, 0.2},
           "Probabilities that a sample skips a branch; with a growing schedule, those of the last block")
          .at_least(0)
          .below(1);
  const Axis<DropPathSchedule> schedule =
      axis<DropPathSchedule>("--drop-path-schedules", "Schedules of the rate over depth");
  std::string gate = "layerscale";

  void train(Trial& trial) const {
    nn::ViT model(vit(trial, {.method = gate}));
    trial.train(model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::stochastic_depth(int argc, const char* const* argv) { return run<vision::StochasticDepth>(argc, argv); }
