// Where should the class token enter (Touvron et al. 2021, CaiT, section 3)? Four designs are compared. The class token
// is present from the first block, or is inserted before a later block, or enters in a separate stage of class
// attention that reads the patches (N:K). The fourth design has no class token and uses the mean of the patches.
#include <regex>

#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// A design. "token" has a class token from the first block; "mean" uses the mean of the patches. "insert-8" inserts the
// class token before block 8 of --depth. "12:2" has 12 blocks of self-attention, then 2 blocks of class attention.
struct Design {
  enum class Kind { token, mean, insert, stages } kind = Kind::token;
  std::int64_t first = 0, second = 0;
};

Design parse(const std::string& text, std::int64_t depth) {
  static const std::regex form("(token)|(mean)|insert-(0*[1-9][0-9]{0,6})|(0*[1-9][0-9]{0,6}):(0*[1-9][0-9]{0,6})");
  std::smatch found;
  const bool known = std::regex_match(text, found, form);
  const auto number = [&](std::size_t group) { return found[group].matched ? std::stoll(found[group]) : 0; };
  usage_check(known && number(3) < depth && number(4) + number(5) <= largest_size,
              "--designs: expected token, mean, insert-B with 1 <= B < {} (--depth), or N:K such as 12:2, got '{}'",
              depth, text);
  using enum Design::Kind;
  if (found[4].matched) return {stages, number(4), number(5)};
  return {found[1].matched ? token : found[2].matched ? mean : insert, number(3)};
}

struct ClassAttention : Study {
  ClassAttention()
      : Study("class_attention", "Where should the class token enter: at the start, later, or in a separate stage?") {
    cli().section("Model");
    cli().option("--depth", &depth, "Number of blocks of the designs other than N:K").at_least(1).at_most(largest_size);
    cli().leave_out("--pool", "use --designs token,mean");
    cli().rule([this] {
      usage_check(network().recipe == RecipeKind::shared, "--recipe {}: the designs need --recipe shared",
                  enum_name(network().recipe));
    });
    defaults({.steps = 300, .warmup = 30, .lr = 1e-3});
    network().patch = 4;
    choose_rates_by(val_accuracy, Better::higher);
    control(design == "token");
    cli().preset("quick", "four designs on glyphs-clutter, one seed; a minute on two cores",
                 {{"--data glyphs-clutter --designs token,insert-10,12:2,mean --patch 8"}});
    cli().preset("cpu",
                 "four designs on CIFAR-100, each at its own rate, 12 judged seeds; two to four hours on two cores; "
                 "needs --data-dir",
                 {{"--data cifar-100 --designs token,insert-10,12:2,mean --seeds 0..12 --steps 1000 --warmup 100"}});
    add_paper_preset(*this, "DeiT-S with LayerScale on ImageNet; needs --image-folder and GPUs",
                     {{"--designs token,mean,insert-2,insert-4,insert-8,insert-10,insert-11,12:1,12:2,12:3,11:1,10:2",
                       "Touvron et al. 2021, CaiT, section 3 (tokens inserted later, stages of class attention); ours: "
                       "the choice of blocks"},
                      {"--depth", "facebookresearch/deit, models.py, deit_small_patch16_224"}},
                     "layerscale");
    cli().examples({"--preset quick", "--preset cpu --data-dir data --jobs 2 --out runs/class_attention",
                    "--designs token,24:2 --depth 24 --steps 600"});
    const auto better = [this](const char* a, const char* b, const std::string& text, const char* source) {
      claim(text, source, higher(val_accuracy, design == a, design == b));
    };
    const char* ours = "a question of ours";
    better("12:2", "token", "class attention (12:2) is better than a class token from the start",
           "Touvron et al. 2021, CaiT, section 3");
    better("insert-8", "token", "a class token inserted before block 8 is better than one from the start", ours);
    better("insert-10", "token", "a class token inserted before block 10 is better than one from the start", ours);
    better("12:2", "12:1", "two blocks of class attention are better than one", ours);
    better("12:2", "mean", "class attention (12:2) is better than the mean of the patches", ours);
    claim("with as many blocks, 10:2 is as good as a token from the start, within one point", ours,
          not_lower(val_accuracy, design == "10:2", design == "token", 0.01));
    output([](const StudyResults& r) {
      return Section{.title = "Accuracy of each design",
                     .caption = "Means over the seeds with 95 % t intervals, and the single seeds.",
                     .charts = {dots_of(r, val_accuracy, "Validation accuracy")}};
    });
    output(attention_section);
    measure_layers();
    columns({train_loss, val_loss, val_accuracy});
    check([this](const DataFacts&) {
      for (const std::string& text : design.values()) parse(text, depth);
    });
  }

  const Axis<std::string> design =
      axis("--designs", {"token", "insert-8", "insert-10", "mean", "12:1", "12:2", "11:1", "10:2"},
           "Designs to compare. token: a class token from the start; insert-B: inserted before block B; N:K: N blocks, "
           "then K blocks of class attention; mean: no class token");
  std::int64_t depth = 12;

  void train(Trial& trial) const {
    const Design d = parse(trial[design], depth);
    nn::ViTOptions o = vit(trial, {.depth = depth, .method = "layerscale"});
    if (d.kind != Design::Kind::stages) {
      o.pool = d.kind == Design::Kind::mean ? nn::Pool::mean : nn::Pool::token;
      o.token_block = d.first;
      nn::ViT model(o);
      trial.train(model);
      return attach_attention(trial, model);
    }
    nn::CaiTOptions stages = nn::cait_of(o);
    stages.depth = d.first;
    stages.depth_token_only = d.second;
    stages.head_mix = nn::HeadMix::none;
    nn::CaiT model(stages);
    trial.train(model);
    attach_attention(trial, model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::class_attention(int argc, const char* const* argv) { return run<vision::ClassAttention>(argc, argv); }
