// Which of Fixup's rules (Zhang, Dauphin, Ma 2019) does a training need? Each trial removes or changes one rule.
#include "experiments/programs.h"

#include <map>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

using namespace plumb;

namespace {

struct Pieces {
  nn::methods::FixupParts parts = {};
  // Fixup's settings: Glorot weights, a head with initial value 0, and a tenth of the learning rate for scalars.
  nn::Recipe recipe = nn::methods::fixup().paper;
};

const std::vector<std::string>& piece_names() {
  static const std::vector<std::string> names{
      "whole",       "scalars-full-rate", "no-shifts", "no-scales",      "no-scalars",
      "last-random", "head-random",       "no-factor", "factor-squared", "nothing"};
  return names;
}

Pieces pieces(const std::string& name) {
  Pieces p;
  if (name == "scalars-full-rate") p.recipe.scalar_rate = 1;
  if (name == "no-shifts" || name == "no-scalars" || name == "nothing") p.parts.shifts = false;
  if (name == "no-scales" || name == "no-scalars" || name == "nothing") p.parts.scales = false;
  if (name == "last-random" || name == "nothing") p.parts.zero_last = false;
  if (name == "head-random" || name == "nothing") p.recipe.zero_head = false;
  if (name == "no-factor" || name == "nothing") p.parts.factor = 0;
  if (name == "factor-squared") p.parts.factor = 2;
  return p;
}

}  // namespace

int plumb::lab::fixup_scalars(int argc, const char* const* argv) {
  vision::Study study("fixup_scalars", "Which of Fixup's rules does a training need?");
  const auto depth =
      study.axis<int>("--depths", {12, 36}, "Numbers of blocks").at_least(1).at_most(lab::largest_size).slowest();
  const auto piece =
      study
          .axis<std::string>("--pieces", piece_names(), "Fixup as a whole, and variants that remove or change one rule")
          .one_of("piece", piece_names());
  const auto lr = study.axis<double>("--lrs", {1e-3}, "Peak learning rates").above(0);
  study.one_rate_for(piece);
  study.options().steps = 600;  // the number of steps that Fixup needs to learn more than the hues of the images
  study.judging().control = "whole";
  study.network().recipe = vision::RecipeKind::paper;
  for (const char* option : {"--recipe", "--weight-init"}) study.cli().leave_out(option, "each piece sets its recipe");
  study.cli().preset("quick", "five pieces at depth 12, 300 steps, one seed; two minutes on two cores", [&] {
    study.options().steps = 300;
    depth.set({12}), piece.set({"whole", "scalars-full-rate", "last-random", "no-factor", "nothing"});
  });
  study.cli().preset(
      "cpu",
      "depth 12 on Fashion-MNIST, all pieces at one rate, 12 judged seeds; one to two hours on two cores; "
      "needs --data-dir",
      [&] {
        study.images().data = "fashion-mnist", study.options().judge_seeds(12);
        depth.set({12});
      });
  study.cli().preset(
      "paper", "DeiT-S with Fixup (no warm-up) at depths 12 to 36 on ImageNet; needs --image-folder and GPUs", [&] {
        vision::set_deit_small(study, [] { return std::vector<std::string>{"fixup"}; });
        study.network().recipe = vision::RecipeKind::paper, study.options().warmup.reset();
        vision::explain(study, "--warmup", "follows --recipe");
        depth.set({12, 18, 24, 36}), lr.set({study.optimization().lr});
        vision::explain(study, "--lrs", "facebookresearch/deit, main.py: 5e-4 x batch / 512");
        vision::explain(study, "--depths", "Touvron et al. 2021, CaiT, table 1");
        vision::explain(study, "--pieces",
                        "Zhang, Dauphin, Ma 2019, rules 1 to 3; learning rate of the scalars: hongyi-zhang/Fixup");
      });
  study.cli().example("--preset quick");
  study.cli().example("--pieces whole,scalars-full-rate --depths 24 --lrs 1e-3,3e-3,1e-2 --seeds 0..4");
  const char* fixup = "Zhang, Dauphin, Ma 2019, Fixup";
  for (const int d : {12, 18, 24, 36, 48}) {
    const auto worse = [&](const char* left_out, const std::string& text, const std::string& source) {
      study.claim(fmt::format("depth {}: {}", d, text), source,
                  lab::higher("train_loss", {{"piece", left_out}}, {{"piece", "whole"}}).at({{"depth", d}}));
    };
    worse("last-random", "last layers that do not start at 0 train worse", std::string(fixup) + ", rule 1");
    worse("head-random", "a head that does not start at 0 trains worse", std::string(fixup) + ", rule 1");
    worse("no-factor", "without the factor by depth it trains worse", std::string(fixup) + ", rule 2");
    worse("no-shifts", "without shifts it trains worse", std::string(fixup) + ", rule 3");
    worse("no-scales", "without scales it trains worse", std::string(fixup) + ", rule 3");
    worse("scalars-full-rate", "scalars at the full learning rate train worse",
          "hongyi-zhang/Fixup, issue 6: training can diverge");
    worse("factor-squared", "with the factor by depth squared it trains worse", "ours: rule 2 has it as it is");
    worse("no-scalars", "without shifts and scales it trains worse", std::string(fixup) + ", rule 3");
    worse("nothing", "without all of it, it trains worse", fixup);
  }
  for (const int d : {12, 18, 24, 36})
    study.published({{"piece", "whole"}, {"depth", d}}, "val_accuracy", "92.5 % on CIFAR-10, vanilla 92.26 (ResNet-56)",
                    "majumderb/rezero: errors of 7.5 and 7.74");
  study.columns({"train_loss", "val_loss", "val_accuracy", "diverged_at"});
  study.show({"train_loss", "val_accuracy"});
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    const Pieces p = pieces(trial[piece]);
    nn::ViTOptions o = vision::vit(trial, {.depth = trial[depth], .gate = nn::methods::fixup(p.parts)});
    o.recipe = p.recipe;
    nn::ViT model(o);
    trial.train(model, lab::record_layers(trial, model.stack()));
  });
}
