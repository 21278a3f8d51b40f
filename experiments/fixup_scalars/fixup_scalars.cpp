// Which of Fixup's rules (Zhang, Dauphin, Ma 2019) does a training need? Each trial removes or changes one rule.
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// Fixup as a whole, and variants that remove or change one rule.
enum class Piece { whole, full_rate, no_shift, no_scale, no_scalar, random_last, random_head, no_factor, square, none };
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
    cli().preset("quick", "five pieces at depth 12, 300 steps, one seed; two minutes on two cores",
                 {{"--steps 300 --depths 12 --pieces whole,scalars-full-rate,last-random,no-factor,nothing"}});
    cli().preset("cpu",
                 "depth 12 on Fashion-MNIST, all pieces at one rate, 12 judged seeds; one to two hours on two cores; "
                 "needs --data-dir",
                 {{"--data fashion-mnist --seeds 0..12 --depths 12"}});
    add_paper_preset(
        *this, "DeiT-S with Fixup (no warm-up) at depths 12 to 36 on ImageNet; needs --image-folder and GPUs",
        {{"--recipe paper --warmup recipe", "follows --recipe"},
         {"--depths 12,18,24,36", "Touvron et al. 2021, CaiT, table 1"},
         {"--pieces", "Zhang, Dauphin, Ma 2019, rules 1 to 3; learning rate of the scalars: hongyi-zhang/Fixup"}},
        "fixup");
    cli().examples(
        {"--preset quick", "--pieces whole,scalars-full-rate --depths 24 --lrs 1e-3,3e-3,1e-2 --seeds 0..4"});
    const std::string fixup = "Zhang, Dauphin, Ma 2019, Fixup";
    for (const int d : {12, 18, 24, 36, 48}) {
      const auto worse = [&](Piece left_out, const std::string& text, const std::string& source) {
        claim(fmt::format("depth {}: {}", d, text), source,
              higher(train_loss, piece == left_out, piece == Piece::whole).at(depth == d));
      };
      worse(Piece::random_last, "last layers that do not start at 0 train worse", fixup + ", rule 1");
      worse(Piece::random_head, "a head that does not start at 0 trains worse", fixup + ", rule 1");
      worse(Piece::no_factor, "without the factor by depth it trains worse", fixup + ", rule 2");
      worse(Piece::no_shift, "without shifts it trains worse", fixup + ", rule 3");
      worse(Piece::no_scale, "without scales it trains worse", fixup + ", rule 3");
      worse(Piece::full_rate, "scalars at the full learning rate train worse",
            "hongyi-zhang/Fixup, issue 6: training can diverge");
      worse(Piece::square, "with the factor by depth squared it trains worse", "ours: rule 2 has it as it is");
      worse(Piece::no_scalar, "without shifts and scales it trains worse", fixup + ", rule 3");
      worse(Piece::none, "without all of it, it trains worse", fixup);
    }
    for (const int d : {12, 18, 24, 36})
      published(piece == Piece::whole && depth == d, val_accuracy, "92.5 % on CIFAR-10, vanilla 92.26 (ResNet-56)",
                "majumderb/rezero: errors of 7.5 and 7.74");
    columns({train_loss, val_loss, val_accuracy, "diverged_at"});
    measure_layers();
  }

  const Axis<std::int64_t> depth = depths({12, 36});
  const Axis<Piece> piece = axis<Piece>("--pieces", "Fixup as a whole, and variants that remove or change one rule");
  const Axis<double> lr = learning_rates({1e-3});

  void train(Trial& trial) const {
    using enum Piece;
    const auto is = [p = trial[piece]](auto... pieces) { return ((p == pieces) || ...); };
    const double factor = is(no_factor, none) ? 0 : is(square) ? 2 : 1;
    const nn::Method parts = nn::methods::fixup().with({{"zero_last", !is(random_last, none)},
                                                        {"factor", factor},
                                                        {"shifts", !is(no_shift, no_scalar, none)},
                                                        {"scales", !is(no_scale, no_scalar, none)}});
    nn::ViTOptions o = vit(trial, {.method = parts});
    // Fixup's settings: Glorot weights, a head with initial value 0, and a tenth of the learning rate for scalars.
    o.recipe = nn::methods::fixup().paper;
    if (is(full_rate)) o.recipe->scalar_rate = 1;
    if (is(random_head, none)) o.recipe->zero_head = false;
    nn::ViT model(o);
    trial.train(model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::fixup_scalars(int argc, const char* const* argv) { return run<vision::FixupScalars>(argc, argv); }
