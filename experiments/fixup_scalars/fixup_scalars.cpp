// Which of Fixup's rules (Zhang, Dauphin, Ma 2019) does a training need? Each trial removes or changes one rule.
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// Fixup as a whole, and variants that remove or change one rule.
enum class Piece {
  whole,
  scalars_full_rate,
  no_shifts,
  no_scales,
  no_scalars,
  last_random,
  head_random,
  no_factor,
  factor_squared,
  nothing
};
constexpr auto names_of(Piece) {
  return std::array{"whole",       "scalars-full-rate", "no-shifts", "no-scales",      "no-scalars",
                    "last-random", "head-random",       "no-factor", "factor-squared", "nothing"};
}

struct FixupScalars : Study {
  FixupScalars() : Study("fixup_scalars", "Which of Fixup's rules does a training need?") {
    one_rate_for(piece);
    defaults({.steps = 600});  // the number of steps that Fixup needs to learn more than the hues of the images
    network().recipe = RecipeKind::paper;
    for (const char* option : {"--recipe", "--weight-init"}) cli().leave_out(option, "each piece sets its recipe");
    control(piece == Piece::whole);
    declare_presets();
    cli().examples(
        {"--preset quick", "--pieces whole,scalars-full-rate --depths 24 --lrs 1e-3,3e-3,1e-2 --seeds 0..4"});
    state_claims();
    for (const int d : {12, 18, 24, 36})
      published(piece == Piece::whole && depth == d, val_accuracy, "92.5 % on CIFAR-10, vanilla 92.26 (ResNet-56)",
                "majumderb/rezero: errors of 7.5 and 7.74");
    columns({train_loss, val_loss, val_accuracy, "diverged_at"});
    measure_layers();
  }

  const Axis<std::int64_t> depth = depths({12, 36});
  const Axis<Piece> piece = axis<Piece>("--pieces", "Fixup as a whole, and variants that remove or change one rule");
  const Axis<double> lr = learning_rates({1e-3});

  void declare_presets() {
    cli().preset("quick", "five pieces at depth 12, 300 steps, one seed; two minutes on two cores",
                 {{"--steps 300 --depths 12 --pieces whole,scalars-full-rate,last-random,no-factor,nothing"}});
    cli().preset("cpu",
                 "depth 12 on Fashion-MNIST, all pieces at one rate, 12 judged seeds; one to two hours on two cores; "
                 "needs --data-dir",
                 {{"--data fashion-mnist --seeds 0..12 --depths 12"}});
    add_paper_preset(
        *this, "paper", "DeiT-S with Fixup (no warm-up) at depths 12 to 36 on ImageNet; needs --image-folder and GPUs",
        deit_small() +
            Settings{{"--warmup recipe", "follows --recipe"},
                     {"--lrs 0.001", "facebookresearch/deit, main.py: 5e-4 x batch / 512"},
                     {"--depths 12,18,24,36", "Touvron et al. 2021, CaiT, table 1"},
                     {"--pieces",
                      "Zhang, Dauphin, Ma 2019, rules 1 to 3; learning rate of the scalars: hongyi-zhang/Fixup"}},
        "fixup");
  }

  void state_claims() {
    using enum Piece;
    const std::string fixup = "Zhang, Dauphin, Ma 2019, Fixup";
    for (const int d : {12, 18, 24, 36, 48}) {
      const auto worse = [&](Piece left_out, const std::string& text, const std::string& source) {
        claim(fmt::format("depth {}: {}", d, text), source,
              higher(train_loss, piece == left_out, piece == whole).at(depth == d));
      };
      worse(last_random, "last layers that do not start at 0 train worse", fixup + ", rule 1");
      worse(head_random, "a head that does not start at 0 trains worse", fixup + ", rule 1");
      worse(no_factor, "without the factor by depth it trains worse", fixup + ", rule 2");
      worse(no_shifts, "without shifts it trains worse", fixup + ", rule 3");
      worse(no_scales, "without scales it trains worse", fixup + ", rule 3");
      worse(scalars_full_rate, "scalars at the full learning rate train worse",
            "hongyi-zhang/Fixup, issue 6: training can diverge");
      worse(factor_squared, "with the factor by depth squared it trains worse", "ours: rule 2 has it as it is");
      worse(no_scalars, "without shifts and scales it trains worse", fixup + ", rule 3");
      worse(nothing, "without all of it, it trains worse", fixup);
    }
  }

  void train(Trial& trial) const {
    using enum Piece;
    const Piece p = trial[piece];
    const nn::Method parts = nn::methods::fixup().with({
        {"zero_last", p != last_random && p != nothing},
        {"factor", p == no_factor || p == nothing ? 0
                   : p == factor_squared          ? 2
                                                  : 1},
        {"shifts", p != no_shifts && p != no_scalars && p != nothing},
        {"scales", p != no_scales && p != no_scalars && p != nothing},
    });
    nn::ViTOptions o = vit(trial, {.method = parts});
    // Fixup's settings: Glorot weights, a head with initial value 0, and a tenth of the learning rate for scalars.
    o.recipe = nn::methods::fixup().paper;
    if (p == scalars_full_rate) o.recipe->scalar_rate = 1;
    if (p == head_random || p == nothing) o.recipe->zero_head = false;
    nn::ViT model(o);
    trial.train(model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::fixup_scalars(int argc, const char* const* argv) {
  vision::FixupScalars study;
  return study.run(argc, argv, [&](vision::Trial& trial) { study.train(trial); });
}
