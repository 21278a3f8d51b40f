// Where should the norm be, and is a norm needed? The program compares post-norm, pre-norm, no norm and later
// proposals, with and without a warm-up.
#include <algorithm>

#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// Registers x + f(x) without a norm: the baseline for all methods that need no norm.
void register_no_norm() {
  nn::register_method<nn::ScaleGate>("no_norm", {.norm = nn::Norm::none,
                                                 .growth = nn::Growth::geometric,
                                                 .formula = "x + f(x)",
                                                 .source = "He et al. 2016, without any norm"});
}

struct NormPlacement : Study {
  NormPlacement() : Study("norm_placement", "Where should the norm be, and which placements train without a warm-up?") {
    defaults({.steps = 300});
    cli().preset("quick", "four placements at depth 12 on glyphs-clutter, one seed; two minutes on two cores",
                 {{"--data glyphs-clutter --gates pre,post,no_norm,deepnorm --depths 12"}});
    cli().preset("cpu",
                 "nine placements at depth 24 on glyphs-clutter, each at its own rate, 12 judged seeds; one to two "
                 "hours on two cores",
                 {{"--data glyphs-clutter --seeds 0..12 --depths 24"}});
    add_paper_preset(*this,
                     "DeiT-S's size on ImageNet (no source compares all placements); needs --image-folder and GPUs",
                     {{"--gates", "ours: most sources train language models, and none compares all methods"},
                      {"--depths", "12: DeiT-S; 36: Touvron et al. 2021, CaiT, table 1"},
                      {"--warmups 0,6255", "facebookresearch/deit, main.py: 5 epochs; ours: none"}});
    cli().examples({"--preset quick", "--gates pre,post,deepnorm --depths 48 --warmups 0,30 --seeds 0..5"});
    cli().derive([this] { state_claims(); });
    columns({train_loss, val_loss, val_accuracy, "diverged_at"});
    measure_layers();
  }

  const Axis<std::string> gate =
      methods({"pre", "post", "no_norm", "deepnorm", "admin", "sub_ln", "peri_ln", "layernorm_scaling", "dyt"});
  const Axis<std::int64_t> depth = depths({12, 36});
  const Axis<std::int64_t> warmup = axis<std::int64_t>("--warmups", {0, 60}, "Numbers of warm-up steps").at_least(0);
  const Axis<double> lr = learning_rates({1e-3});

  // The claims are about the longest warm-up of the call.
  void state_claims() {
    const std::int64_t longest = std::ranges::max(warmup.values());
    control(gate == "pre" && warmup == longest);
    for (const int d : {12, 24, 36, 48}) {
      const auto better = [&](const std::string& text, const char* source, const char* a, const char* b) {
        claim(fmt::format("depth {}: {} trains better than {}", d, a, text), source,
              lower(train_loss, gate == a, gate == b).at(depth == d && warmup == longest));
      };
      claim(fmt::format("depth {}: post-norm trains better with a warm-up than without", d),
            "Vaswani et al. 2017; Liu et al. 2020, Admin",
            lower(train_loss, warmup == longest, warmup == 0).at(depth == d && gate == "post"));
      claim(fmt::format("depth {}: pre-norm does without a warm-up, within 0.05", d), "ours; widely said of pre-norm",
            not_higher(train_loss, warmup == 0, warmup == longest, 0.05).at(depth == d && gate == "pre"));
      better("post-norm", "Wang et al. 2022, DeepNet", "deepnorm", "post");
      better("post-norm", "Liu et al. 2020, Admin", "admin", "post");
      better("pre-norm", "Wang et al. 2022, Magneto", "sub_ln", "pre");
      better("pre-norm", "Kim et al. 2025, Peri-LN", "peri_ln", "pre");
      better("pre-norm", "Sun et al. 2025, LayerNorm-Scaling", "layernorm_scaling", "pre");
      claim(fmt::format("depth {}: DyT is as good as LayerNorm (pre), within 0.05", d), "Zhu et al. 2025, DyT",
            not_higher(train_loss, gate == "dyt", gate == "pre", 0.05).at(depth == d && warmup == longest));
      claim(fmt::format("depth {}: without any norm it trains worse than pre-norm", d),
            "He et al. 2016; Zhang, Dauphin, Ma 2019",
            higher(train_loss, gate == "no_norm", gate == "pre").at(depth == d && warmup == longest));
    }
    const auto add = [&](const char* name, const char* figure, const char* source) {
      published(gate == name && depth == 12 && warmup == longest, val_accuracy, figure, source);
    };
    add("dyt", "82.5 % top-1 on ImageNet, LayerNorm 82.3 (ViT-B); 83.6, LayerNorm 83.1 (ViT-L)",
        "jiachenzhu/DyT, README");
    add("peri_ln", "51.57 on average over benchmarks, pre-norm 49.69 (language model, 400M; of another depth)",
        "Kim et al. 2025, as a secondary text reports it");
    add("layernorm_scaling", "perplexity 25.76, pre-norm 26.73 (language model, 130M; of another depth)",
        "Sun et al. 2025, as a secondary text reports it");
    add("post", "perplexity 26.95 at 130M, 1368.3 at 350M; pre-norm 26.73, 19.58 (language models, of another depth)",
        "Sun et al. 2025, as a secondary text reports it");
    add("admin", "27.84 BLEU at 6 layers, 28.91 at 18, 29.65 at 100 (WMT14 English to German)", "admin-torch, README");
    add("deepnorm", "200 layers of it (3.2B) beat 48 layers of another model (12B) by 5 BLEU (many languages)",
        "Wang et al. 2022, abstract, as a secondary text reports it");
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::norm_placement(int argc, const char* const* argv) {
  [[maybe_unused]] static const bool once = (vision::register_no_norm(), true);
  return run<vision::NormPlacement>(argc, argv);
}
