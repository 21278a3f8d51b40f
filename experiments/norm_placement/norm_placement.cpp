// Where should the norm be, and is a norm needed? The program compares post-norm, pre-norm, no norm and later
// proposals, with and without a warm-up.
#include "experiments/programs.h"

#include <algorithm>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

using namespace plumb;

namespace {

// Registers x + f(x) without a norm: the baseline for all methods that need no norm.
void register_no_norm() {
  nn::register_gate<nn::ScaleGate>("no_norm", {.norm = nn::Norm::none,
                                               .growth = nn::Growth::geometric,
                                               .formula = "x + f(x)",
                                               .source = "He et al. 2016, without any norm"});
}

}  // namespace

int plumb::lab::norm_placement(int argc, const char* const* argv) {
  [[maybe_unused]] static const bool once = (register_no_norm(), true);
  vision::Study study("norm_placement", "Where should the norm be, and which placements train without a warm-up?");
  const auto gate = study
                        .axis<std::string>("--gates",
                                           {"pre", "post", "no_norm", "deepnorm", "admin", "sub_ln", "peri_ln",
                                            "layernorm_scaling", "dyt"},
                                           "Methods to compare")
                        .one_of_methods("method");
  const auto depth =
      study.axis<int>("--depths", {12, 36}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  const auto warmup = study.axis<std::int64_t>("--warmups", {0, 60}, "Numbers of warm-up steps").at_least(0);
  const auto lr = study.axis<double>("--lrs", {1e-3}, "Peak learning rates").above(0);
  study.options().steps = 300;
  study.cli().preset("quick", "four placements at depth 12 on glyphs-clutter, one seed; two minutes on two cores", [&] {
    study.images().data = "glyphs-clutter";
    gate.set({"pre", "post", "no_norm", "deepnorm"}), depth.set({12});
  });
  study.cli().preset("cpu",
                     "nine placements at depth 24 on glyphs-clutter, each at its own rate, 12 judged seeds; one to two "
                     "hours on two cores",
                     [&] {
                       study.images().data = "glyphs-clutter", study.options().judge_seeds(12);
                       depth.set({24});
                     });
  study.cli().preset(
      "paper", "DeiT-S's size on ImageNet (no source compares all placements); needs --image-folder and GPUs", [&] {
        vision::set_deit_small(study, [gate] { return gate.values(); });
        warmup.set({0, 6255}), lr.set({study.optimization().lr});
        vision::explain(study, "--lrs", "facebookresearch/deit, main.py: 5e-4 x batch / 512");
        vision::explain(study, "--gates", "ours: most sources train language models, and none compares all methods");
        vision::explain(study, "--depths", "12: DeiT-S; 36: Touvron et al. 2021, CaiT, table 1");
        vision::explain(study, "--warmups", "facebookresearch/deit, main.py: 5 epochs; ours: none");
      });
  study.cli().example("--preset quick");
  study.cli().example("--gates pre,post,deepnorm --depths 48 --warmups 0,30 --seeds 0..5");
  study.cli().derive([&] {
    const std::int64_t longest = std::ranges::max(warmup.values());
    study.judging().control = fmt::format("pre warmup {}", longest);
    for (const int d : {12, 24, 36, 48}) {
      const auto at = [&](lab::Comparison c) { return c.at({{"depth", d}, {"warmup", longest}}); };
      study.claim(
          fmt::format("depth {}: post-norm trains better with a warm-up than without", d),
          "Vaswani et al. 2017; Liu et al. 2020, Admin",
          lab::lower("train_loss", {{"warmup", longest}}, {{"warmup", 0}}).at({{"depth", d}, {"gate", "post"}}));
      study.claim(fmt::format("depth {}: pre-norm does without a warm-up, within 0.05", d),
                  "ours; widely said of pre-norm",
                  lab::not_higher("train_loss", {{"warmup", 0}}, {{"warmup", longest}}, 0.05)
                      .at({{"depth", d}, {"gate", "pre"}}));
      for (const auto& [name, source] :
           {std::pair("deepnorm", "Wang et al. 2022, DeepNet"), {"admin", "Liu et al. 2020, Admin"}})
        study.claim(fmt::format("depth {}: {} trains better than post-norm", d, name), source,
                    at(lab::lower("train_loss", {{"gate", name}}, {{"gate", "post"}})));
      for (const auto& [name, source] : {std::pair("sub_ln", "Wang et al. 2022, Magneto"),
                                         {"peri_ln", "Kim et al. 2025, Peri-LN"},
                                         {"layernorm_scaling", "Sun et al. 2025, LayerNorm-Scaling"}})
        study.claim(fmt::format("depth {}: {} trains better than pre-norm", d, name), source,
                    at(lab::lower("train_loss", {{"gate", name}}, {{"gate", "pre"}})));
      study.claim(fmt::format("depth {}: DyT is as good as LayerNorm (pre), within 0.05", d), "Zhu et al. 2025, DyT",
                  at(lab::not_higher("train_loss", {{"gate", "dyt"}}, {{"gate", "pre"}}, 0.05)));
      study.claim(fmt::format("depth {}: without any norm it trains worse than pre-norm", d),
                  "He et al. 2016; Zhang, Dauphin, Ma 2019",
                  at(lab::higher("train_loss", {{"gate", "no_norm"}}, {{"gate", "pre"}})));
    }
    const auto published = [&](const char* name, const char* figure, const char* source) {
      study.published({{"gate", name}, {"depth", 12}, {"warmup", longest}}, "val_accuracy", figure, source);
    };
    published("dyt", "82.5 % top-1 on ImageNet, LayerNorm 82.3 (ViT-B); 83.6, LayerNorm 83.1 (ViT-L)",
              "jiachenzhu/DyT, README");
    published("peri_ln", "51.57 on average over benchmarks, pre-norm 49.69 (language model, 400M; of another depth)",
              "Kim et al. 2025, as a secondary text reports it");
    published("layernorm_scaling", "perplexity 25.76, pre-norm 26.73 (language model, 130M; of another depth)",
              "Sun et al. 2025, as a secondary text reports it");
    published("post",
              "perplexity 26.95 at 130M, 1368.3 at 350M; pre-norm 26.73, 19.58 (language models, of another depth)",
              "Sun et al. 2025, as a secondary text reports it");
    published("admin", "27.84 BLEU at 6 layers, 28.91 at 18, 29.65 at 100 (WMT14 English to German)",
              "admin-torch, README");
    published("deepnorm", "200 layers of it (3.2B) beat 48 layers of another model (12B) by 5 BLEU (many languages)",
              "Wang et al. 2022, abstract, as a secondary text reports it");
  });
  study.columns({"train_loss", "val_loss", "val_accuracy", "diverged_at"});
  study.show({"train_loss", "val_accuracy"});
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = trial[gate]}));
    trial.train(model, lab::record_layers(trial, model.stack()));
  });
}
