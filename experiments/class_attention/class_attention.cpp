// Where should the class token enter (Touvron et al. 2021, CaiT, section 3)? Four designs are compared. The class token
// is present from the first block, or is inserted before a later block, or enters in a separate stage of class
// attention that reads the patches (N:K). The fourth design has no class token and uses the mean of the patches.
#include "experiments/programs.h"

#include <charconv>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/pictures/pictures.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/models/cait.h"

using namespace plumb;

namespace {

// A design. "token" has a class token from the first block; "mean" uses the mean of the patches. "insert-8" inserts the
// class token before block 8 of --depth. "12:2" has 12 blocks of self-attention, then 2 blocks of class attention.
struct Design {
  enum class Kind { token, mean, insert, stages } kind = Kind::token;
  std::int64_t first = 0, second = 0;
};

Design parse(const std::string& text, std::int64_t depth) {
  if (text == "token") return {};
  if (text == "mean") return {Design::Kind::mean};
  Design d{text.starts_with("insert-") ? Design::Kind::insert : Design::Kind::stages};
  const char *at = text.data() + (d.kind == Design::Kind::insert ? 7 : 0), *end = text.data() + text.size();
  auto read = std::from_chars(at, end, d.first);
  bool ok = read.ec == std::errc();
  if (d.kind == Design::Kind::stages) {
    ok = ok && read.ptr != end && *read.ptr == ':';
    if (ok) read = std::from_chars(read.ptr + 1, end, d.second);
    ok = ok && read.ec == std::errc() && d.first >= 1 && d.second >= 1 && d.first + d.second <= lab::largest_size;
  } else {
    ok = ok && d.first >= 1 && d.first < depth;
  }
  lab::usage_check(
      ok && read.ptr == end,
      "--designs: expected token, mean, insert-B with 1 <= B < {} (--depth), or N:K such as 12:2, got '{}'", depth,
      text);
  return d;
}

}  // namespace

int plumb::lab::class_attention(int argc, const char* const* argv) {
  vision::Study study("class_attention",
                      "Where should the class token enter: at the start, later, or in a separate stage?");
  const auto design =
      study.axis<std::string>("--designs", {"token", "insert-8", "insert-10", "mean", "12:1", "12:2", "11:1", "10:2"},
                              "Designs to compare. token: a class token from the start; insert-B: inserted before "
                              "block B; N:K: N blocks, then K "
                              "blocks of class attention; mean: no class token");
  std::int64_t depth = 12;
  study.cli().section("Model");
  study.cli()
      .option("--depth", &depth, "Number of blocks of the designs other than N:K")
      .at_least(1)
      .at_most(lab::largest_size);
  study.network().patch = 4;
  study.cli().leave_out("--pool", "use --designs token,mean");
  study.cli().rule([&study] {
    lab::usage_check(study.network().recipe == vision::RecipeKind::shared,
                     "--recipe {}: the designs need --recipe shared", enum_name(study.network().recipe));
  });
  study.options().steps = 300, study.options().warmup = 30;
  study.optimization().lr = 1e-3;
  study.choose_rates_by("val_accuracy", lab::Better::higher);
  study.judging().control = "token";
  study.cli().preset("quick", "four designs on glyphs-clutter, one seed; a minute on two cores", [&] {
    study.images().data = "glyphs-clutter";
    design.set({"token", "insert-10", "12:2", "mean"});
    study.network().patch = 8;
  });
  study.cli().preset("cpu",
                     "four designs on CIFAR-100, each at its own rate, 12 judged seeds; two to four hours on two "
                     "cores; needs --data-dir",
                     [&] {
                       study.images().data = "cifar-100";
                       design.set({"token", "insert-10", "12:2", "mean"});
                       study.options().judge_seeds(12);
                       study.options().steps = 1000, study.options().warmup = 100;
                     });
  study.cli().preset("paper", "DeiT-S with LayerScale on ImageNet; needs --image-folder and GPUs", [&] {
    vision::set_deit_small(study, [] { return std::vector<std::string>{"layerscale"}; });
    design.set({"token", "mean", "insert-2", "insert-4", "insert-8", "insert-10", "insert-11", "12:1", "12:2", "12:3",
                "11:1", "10:2"});
    vision::explain(
        study, "--designs",
        "Touvron et al. 2021, CaiT, section 3 (tokens inserted later, stages of class attention); ours: the "
        "choice of blocks");
    vision::explain(study, "--depth", "facebookresearch/deit, models.py, deit_small_patch16_224");
  });
  study.cli().example("--preset quick");
  study.cli().example("--preset cpu --data-dir data --jobs 2 --out runs/class_attention");
  study.cli().example("--designs token,24:2 --depth 24 --steps 600");
  study.claim("class attention (12:2) is better than a class token from the start",
              "Touvron et al. 2021, CaiT, section 3",
              lab::higher("val_accuracy", {{"design", "12:2"}}, {{"design", "token"}}));
  const char* ours = "a question of ours";
  for (const auto& [better, worse, text] :
       {std::tuple("insert-8", "token", "a class token inserted before block 8 is better than one from the start"),
        {"insert-10", "token", "a class token inserted before block 10 is better than one from the start"},
        {"12:2", "12:1", "two blocks of class attention are better than one"},
        {"12:2", "mean", "class attention (12:2) is better than the mean of the patches"}})
    study.claim(text, ours, lab::higher("val_accuracy", {{"design", better}}, {{"design", worse}}));
  study.claim("with as many blocks, 10:2 is as good as a token from the start, within one point", ours,
              lab::not_lower("val_accuracy", {{"design", "10:2"}}, {{"design", "token"}}, 0.01));
  study.output([](const lab::StudyResults& r) {
    return lab::Section{.title = "Accuracy of each design",
                        .caption = "Means over the seeds with 95 % t intervals, and the single seeds.",
                        .charts = {lab::dots_of(r, "val_accuracy", "Validation accuracy")}};
  });
  study.output(vision::attention_section);
  study.output({"layers.csv", lab::layers_csv});
  study.columns({"train_loss", "val_loss", "val_accuracy"});
  study.show({"train_loss", "val_loss", "val_accuracy"});
  study.check([&](const lab::DataFacts&) {
    for (const std::string& text : design.values()) parse(text, depth);
  });
  return study.run(argc, argv, [&](lab::Trial& trial) {
    const Design d = parse(trial[design], depth);
    nn::ViTOptions o = vision::vit(trial, {.depth = depth, .gate = "layerscale"});
    if (d.kind != Design::Kind::stages) {
      o.pool = d.kind == Design::Kind::mean ? nn::Pool::mean : nn::Pool::token;
      o.token_block = d.first;
      nn::ViT model(o);
      trial.train(model, lab::record_layers(trial, model.stack()));
      return vision::attach_attention(trial, model);
    }
    nn::CaiT model({.image = o.image,
                    .patch = o.patch,
                    .channels = o.channels,
                    .classes = o.classes,
                    .dim = o.dim,
                    .depth = d.first,
                    .heads = o.heads,
                    .depth_token_only = d.second,
                    .mlp_ratio = o.mlp_ratio,
                    .gate = o.gate,
                    .head_mix = nn::HeadMix::none,
                    .norm_eps = o.norm_eps,
                    .recipe = o.recipe,
                    .drop_key = o.drop_key,
                    .attention_dropout = o.attention_dropout,
                    .drop_head = o.drop_head,
                    .drop_path = o.drop_path,
                    .seed = o.seed});
    trial.train(model, lab::record_layers(trial, model.stack()));
    vision::attach_attention(trial, model);
  });
}
