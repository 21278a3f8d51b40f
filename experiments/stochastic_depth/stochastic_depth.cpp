// Which rate of stochastic depth is best (Huang et al. 2016)? Should the rate be the same for all layers or grow with
// depth? CaiT found no benefit of a growing rate. DeiT uses a growing rate.
#include "experiments/programs.h"

#include <algorithm>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"

using namespace plumb;

int plumb::lab::stochastic_depth(int argc, const char* const* argv) {
  vision::Study study(
      "stochastic_depth",
      "Which rate of stochastic depth is best, and is a uniform rate as good as one that grows with depth?");
  const auto depth =
      study.axis<int>("--depths", {6, 12, 24}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  const auto rate =
      study
          .axis<double>("--drop-paths", {0, 0.05, 0.1, 0.2},
                        "Probabilities that a sample skips a branch; with a growing schedule, those of the last block")
          .at_least(0)
          .below(1);
  const auto schedule = study
                            .axis<std::string>("--drop-path-schedules", enum_names<vision::DropPathSchedule>(),
                                               "Schedules of the rate over depth")
                            .one_of("schedule", enum_names<vision::DropPathSchedule>());
  // Without dropping, all schedules are equal, so only the first schedule is trained.
  study.only([&](const lab::Point& p) {
    return p.get<double>("drop_path") > 0 || p.get<std::string>("drop_path_schedule") == schedule.values().front();
  });
  study.judging().control = "drop_path 0 drop_path_schedule uniform";
  std::string gate = "layerscale";
  study.cli().section("Model");
  study.cli().option("--gate", &gate, "Residual method").one_of_methods("gate");
  study.options().steps = 600, study.options().warmup = 30;
  study.optimization().lr = 1e-3;
  study.one_rate_for(schedule);
  study.choose_rates_by("val_accuracy", lab::Better::higher);
  study.cli().preset("quick", "depth 12, two rates on glyphs-few, one seed; a minute on two cores", [&] {
    study.images().data = "glyphs-few";
    depth.set({12}), rate.set({0, 0.1});
    study.options().steps = 300;
  });
  study.cli().preset(
      "cpu",
      "depths 12 and 24 on 5,000 images of CIFAR-100, few enough to need regularisation, each "
      "drop rate at its own learning rate, 12 judged seeds; three to six hours on two cores; needs --data-dir",
      [&] {
        study.images().data = "cifar-100", study.images().train_images = 5000;
        study.options().judge_seeds(12);
        depth.set({12, 24}), rate.set({0, 0.1, 0.2});
        study.options().steps = 1000, study.options().warmup = 100;
      });
  study.cli().preset(
      "paper", "DeiT-S with LayerScale at depths 12 to 36 on ImageNet; needs --image-folder and GPUs", [&] {
        vision::set_deit_small(study, [&gate] { return std::vector<std::string>{gate}; });
        depth.set({12, 18, 24, 36}), rate.set({0, 0.05, 0.1, 0.2, 0.25});
        vision::explain(study, "--depths", "Touvron et al. 2021, CaiT, table 1");
        vision::explain(study, "--drop-paths",
                        "facebookresearch/deit: 0.1, and 0.2 best at 24 blocks (issue 218); 0.05 at 12 as "
                        "a secondary text reports; ours: 0 and 0.25");
        vision::explain(study, "--drop-path-schedules",
                        "uniform: Touvron et al. 2021, CaiT; linear: facebookresearch/deit, models.py");
        vision::explain(study, "--gate", "Touvron et al. 2021, CaiT");
      });
  study.cli().example("--preset quick");
  study.cli().example("--drop-paths 0,0.3 --depths 24,48 --gate pre --seeds 0..2");
  for (const int d : {6, 12, 18, 24, 36})
    for (const double p : {0.05, 0.1, 0.2, 0.25}) {
      study.claim(fmt::format("depth {}, rate {:g}: uniform is as good as linear, within a quarter of a point", d, p),
                  "Touvron et al. 2021, CaiT: no benefit of linear",
                  lab::not_lower("val_accuracy", {{"drop_path_schedule", "uniform"}},
                                 {{"drop_path_schedule", "linear"}}, 0.0025)
                      .at({{"depth", d}, {"drop_path", p}}));
      study.claim(fmt::format("depth {}: a uniform rate of {:g} is better than none", d, p),
                  "Huang et al. 2016, of rates tuned by depth",
                  lab::higher("val_accuracy", {{"drop_path", p}}, {{"drop_path", 0.0}})
                      .at({{"depth", d}, {"drop_path_schedule", "uniform"}}));
    }
  // If both schedules have the same rate in the last block, the linear schedule drops half as much as the uniform one.
  for (const int d : {6, 12, 18, 24, 36})
    for (const double p : {0.05, 0.1})
      study.claim(
          fmt::format(
              "depth {}: uniform {:g} is as good as linear to {:g}, which drops as much, within a quarter of a point",
              d, p, 2 * p),
          "ours",
          lab::not_lower("val_accuracy", {{"drop_path_schedule", "uniform"}, {"drop_path", p}},
                         {{"drop_path_schedule", "linear"}, {"drop_path", 2 * p}}, 0.0025)
              .at({{"depth", d}}));
  study.published({{"depth", 24}, {"drop_path", 0.2}, {"drop_path_schedule", "uniform"}}, "val_accuracy",
                  "81.0 % top-1 on ImageNet, the best rate (without LayerScale)",
                  "an author, facebookresearch/deit, issue 218");
  study.published({{"depth", 12}, {"drop_path", 0.05}, {"drop_path_schedule", "uniform"}}, "val_accuracy",
                  "79.9 % top-1 on ImageNet (without LayerScale)", "CaiT, as a secondary text reports table 1");
  study.output([](const lab::StudyResults& r) {
    return lab::Section{
        .title = "Accuracy and loss by rate",
        .caption = "",
        .charts = {lab::plot_of(r, {.value = "val_accuracy", .axis = "drop_path", .title = "Validation accuracy"}),
                   lab::plot_of(r, {.value = "train_loss", .axis = "drop_path", .title = "Training loss"})}};
  });
  study.output({"layers.csv", lab::layers_csv});
  study.columns({"train_loss", "val_loss", "val_accuracy"});
  study.show({"train_loss", "val_loss", "val_accuracy"});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = gate}));
    trial.train(model, lab::record_layers(trial, model.stack()));
  });
}
