// Trains a ViT (Dosovitskiy et al. 2021; DeiT, Touvron et al. 2021) or a CaiT (Touvron et al. 2021) with any residual
// method. Also evaluates trained weights or continues their training.
#include "experiments/vit/vit.h"

#include "experiments/vision/options/gate_init.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/programs/evaluate_images.h"
#include "plumb/vision.h"

namespace plumb::vision {

VitStudy::VitStudy()
    : Study("vit",
            "Trains a ViT or a CaiT with any residual method; or evaluates trained weights (timm's names) on images, "
            "or continues their training. With --save-weights it saves the weights of each trial that does not "
            "diverge, under timm's names.") {
  Cli& cli = this->cli();
  defaults({.steps = 300, .warmup = 30, .lr = 1e-3});
  cli.section("Model");
  cli.option("--model", &network().model,
             "Network; with cait, the defaults are those of a CaiT, which --model cait --print-config shows")
      .one_of("model");
  cli.option("--gate", &gate, "Residual method (of stage 1 of a CaiT, whose stage 2 always has LayerScale)")
      .one_of_methods(true);
  cli.option("--depth", &depth, "Number of blocks (of stage 1 of a CaiT)").at_least(1).at_most(largest_size);
  cli.option("--mlp-ratio", &mlp_ratio, "Hidden width of the MLPs, as a multiple of --dim")
      .at_least(1)
      .at_most(largest_size);
  cli.option("--norm-eps", &norm_eps, "Epsilon of the norms").at_least(least_eps);
  cli.option("--init", &init,
             "Initial value of LayerScale; with --weights without LayerScale it is 1, which keeps the network's output")
      .at_least(0)
      .at_most(10);
  weights.declare(cli);
  for (const auto& [name, dim, heads] : {std::tuple("tiny", 192, 3), {"small", 384, 6}, {"base", 768, 12}})
    cli.preset(fmt::format("vit-{}", name),
               fmt::format("12 blocks of width {}, {} heads, patches of 16, a class token", dim, heads),
               {{fmt::format("--dim {} --heads {} --patch 16 --pool token --depth 12", dim, heads),
                 fmt::format("timm 1.0.31, vision_transformer.py, vit_{}_patch16_224", name)}});
  declare_cait();
  cli.section("Machine");
  cli.option("--checkpoint", &checkpoint, "Save memory: recompute the blocks (of stage 1) in the backward pass")
      .scope(Scope::speed);
  cli.rule([this] { check_model(); });
  cli.examples({"--image-folder flowers --preset vit-tiny --augment deit --steps 20000",
                "--weights vit_tiny_patch16_224.safetensors --image-folder photos --normalization half --evaluate",
                "--weights vit_tiny_patch16_224.safetensors --image-folder flowers --normalization half --gate "
                "layerscale --fine-tune --lr 5e-5 --steps 1000"});
  cli.action([this, &cli]() -> std::optional<int> {
    if (!weights.evaluates()) return std::nullopt;
    take_sizes();
    return evaluate_images(weights, options(), images(), cli);
  });
  cli.derive([this, &cli] {
    init_is_of_gate = take_init_of_gate(cli, gate, depth, init);
    if (weights.trains_on()) take_sizes(), weights.take_images(cli, images());
    if (is_cait()) derive_cait();
  });
  columns({train_loss, val_loss, val_accuracy});
  output(attention_section);
  measure_layers();
}

void VitStudy::check_model() {
  const std::string preset = cli().declared("--preset")->text();
  usage_check(preset.empty() || preset.starts_with("cait-") == is_cait(),
              "--preset {} is a {}, and the network is a {}; leave it out", preset, is_cait() ? "ViT" : "CaiT",
              vision::title(network().model));
  usage_check(!is_cait() || (!cli().typed("--pool") && network().pool == nn::Pool::mean),
              "--pool has no effect with --model cait, whose head reads a class token; leave it out");
  for (const char* option : {"--depth-token-only", "--talking-heads"})
    usage_check(is_cait() || !cli().typed(option),
                "{} has no effect without --model cait; give --model cait, or leave it out", option);
}

void VitStudy::take_sizes() {
  weights.supply({.heads = cli().given("--heads") ? std::optional(network().heads) : std::nullopt,
                  .norm_eps = cli().given("--norm-eps") ? std::optional(norm_eps) : std::nullopt,
                  .pool = cli().given("--pool"),
                  .method = cli().given("--gate") ? gate : ""});
  const auto decide = [this](const std::string& option, auto& variable, const auto& there) {
    weights.decide(cli(), option, variable, there);
  };
  const auto* cait = std::get_if<nn::CaiTOptions>(&weights.card().options);
  usage_check((cait != nullptr) == is_cait(), "{} is a {}; give --model {}", weights.path(), cait ? "CaiT" : "ViT",
              cait ? "cait" : "vit");
  std::visit(
      [&](const auto& there) {
        decide("--dim", network().dim, there.dim);
        decide("--heads", network().heads, there.heads);
        decide("--depth", depth, there.depth);
        decide("--mlp-ratio", mlp_ratio, there.mlp_ratio);
        decide("--patch", network().patch, there.patch);
        decide("--norm-eps", norm_eps, there.norm_eps);
        if (weights.evaluates() || there.method->name != "pre" || !has_layerscale())
          weights.decide_gate(cli(), gate, *there.method);
        else if (!init_is_of_gate)
          weights.take_init(cli(), init);
      },
      weights.card().options);
  if (!cait) return decide("--pool", network().pool, std::get<nn::ViTOptions>(weights.card().options).pool);
  decide("--depth-token-only", depth_token_only, cait->depth_token_only);
  const bool talks = cait->head_mix != nn::HeadMix::none;
  if (!talks || talking_heads == nn::HeadMix::none)
    decide("--talking-heads", talking_heads, talks ? nn::HeadMix::cait : nn::HeadMix::none);
}

void VitStudy::train(Trial& trial) {
  const auto start = has_layerscale() ? std::optional(init) : std::nullopt;
  nn::ViTOptions o =
      vit(trial, {.depth = depth, .method = start ? nn::methods::layerscale(init) : nn::MethodChoice(gate)});
  o.mlp_ratio = mlp_ratio;
  o.norm_eps = norm_eps;
  const auto train_network = [&](auto& model, nn::KeyMap names, const Observer& observer = {}) {
    if (weights.given()) weights.put_into(model, trial, start);
    model.checkpoint_blocks(checkpoint);
    trial.save_under(std::move(names));
    trial.train(model, observer);
    attach_attention(trial, model);
  };
  if (!is_cait()) {
    nn::ViT model(o);
    return train_network(model, nn::timm_vit(o.channels));
  }
  nn::CaiTOptions stages = nn::cait_of(o);
  stages.depth_token_only = depth_token_only;
  stages.method = gate;
  stages.init = init;
  stages.head_mix = talking_heads;
  nn::CaiT model(stages);
  // DropKey's statistics of a step, as means over the attention layers of stage 1. They are not logged at every step,
  // because each log draws every mask again.
  const auto log_drops = [&](std::int64_t step) {
    if (step % 10 != 0 || stages.drop_key.rate == 0) return;
    const std::int64_t keys = (stages.image / stages.patch) * (stages.image / stages.patch);
    double ratio = 0, empty = 0;
    for (auto& block : model.blocks()) {
      const nn::DropKeyStatistics s = dynamic_cast<const nn::AttentionBranch&>(block.branch("attn"))
                                          .drop_key_statistics(trial.options().batch, keys, keys);
      ratio += s.drop_ratio / static_cast<double>(model.blocks().size());
      empty += s.empty_rows / static_cast<double>(model.blocks().size());
    }
    trial.log({{"drop_ratio", ratio}, {"empty_rows", empty}});
  };
  train_network(model, nn::timm_cait(o.channels), {.before = log_drops});
}

}  // namespace plumb::vision

int plumb::lab::vit(int argc, const char* const* argv) { return run<vision::VitStudy>(argc, argv); }
