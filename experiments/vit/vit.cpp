// Trains a ViT (Dosovitskiy et al. 2021; DeiT, Touvron et al. 2021) or a CaiT (Touvron et al. 2021) with any residual
// method. Also evaluates trained weights or continues their training.
#include "experiments/vision/options/gate_init.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/programs/evaluate_images.h"
#include "experiments/vit/cait.h"
#include "plumb/vision.h"

using namespace plumb;

namespace {

using vision::VitSettings;

// Number of steps between two logs of DropKey's statistics in a CaiT. The statistics are not logged at every step,
// because each log draws every mask again.
constexpr std::int64_t drop_logged_every = 10;

struct Size {
  const char* name;
  std::int64_t dim, heads;
};
constexpr Size sizes[] = {{"tiny", 192, 3}, {"small", 384, 6}, {"base", 768, 12}};

bool is_cait(vision::Study& study) { return study.network().model == vision::NetworkModel::cait; }

// Throws UsageError if the user gives an option or a preset of the other model.
void check_model(vision::Study& study) {
  const lab::Cli& cli = study.cli();
  const bool cait = is_cait(study);
  const std::string preset = cli.declared("--preset")->text();
  lab::usage_check(preset.empty() || preset.starts_with("cait-") == cait,
                   "--preset {} is a {}, and the network is a {}; leave it out", preset, cait ? "ViT" : "CaiT",
                   title(study.network().model));
  lab::usage_check(!cait || (!cli.typed("--pool") && study.network().pool == nn::Pool::mean),
                   "--pool has no effect with --model cait, whose head reads a class token; leave it out");
  for (const char* option : {"--depth-token-only", "--talking-heads"})
    lab::usage_check(cait || !cli.typed(option),
                     "{} has no effect without --model cait; give --model cait, or leave it out", option);
}

void declare(VitSettings& o, vision::Study& study) {
  lab::Cli& cli = study.cli();
  cli.section("Model");
  cli.option("--model", &study.network().model,
             "Network; with cait, the defaults are those of a CaiT, which --model cait --print-config shows")
      .one_of("model");
  cli.option("--gate", &o.gate, "Residual method (of stage 1 of a CaiT, whose stage 2 always has LayerScale)")
      .one_of_methods(true);
  cli.option("--depth", &o.depth, "Number of blocks (of stage 1 of a CaiT)").at_least(1).at_most(lab::largest_size);
  cli.option("--mlp-ratio", &o.mlp_ratio, "Hidden width of the MLPs, as a multiple of --dim")
      .at_least(1)
      .at_most(lab::largest_size);
  cli.option("--norm-eps", &o.norm_eps, "Epsilon of the norms").at_least(least_eps);
  cli.option("--init", &o.init,
             "Initial value of LayerScale; with --weights without LayerScale it is 1, which keeps the network's output")
      .at_least(0)
      .at_most(10);
  o.weights.declare(cli);
  for (const Size& size : sizes)
    cli.preset(fmt::format("vit-{}", size.name),
               fmt::format("12 blocks of width {}, {} heads, patches of 16, a class token", size.dim, size.heads),
               {{fmt::format("--dim {} --heads {} --patch 16 --pool token --depth 12", size.dim, size.heads),
                 fmt::format("timm 1.0.31, vision_transformer.py, vit_{}_patch16_224", size.name)}});
  vision::declare_cait(o, study);
  cli.section("Machine");
  cli.option("--checkpoint", &o.checkpoint, "Save memory: recompute the blocks (of stage 1) in the backward pass")
      .scope(lab::Scope::speed);
  cli.rule([&study] { check_model(study); });
  cli.examples(
      {"--image-folder flowers --preset vit-tiny --augment deit --steps 20000",
       "--weights vit_tiny_patch16_224.safetensors --image-folder photos --normalization half --evaluate",
       "--weights vit_tiny_patch16_224.safetensors --image-folder flowers --normalization half --gate layerscale "
       "--fine-tune --lr 5e-5 --steps 1000"});
}

// Takes the sizes and the residual method of the network from the file of --weights. If the method in the file is pre
// and --gate is layerscale, a network that is trained further gets LayerScale.
void take_sizes(VitSettings& o, vision::Study& study) {
  lab::Cli& cli = study.cli();
  vision::NetworkOptions& network = study.network();
  const auto decide = [&](const std::string& option, auto& variable, const auto& there) {
    o.weights.decide(cli, option, variable, there);
  };
  const auto* cait = std::get_if<nn::CaiTOptions>(&o.weights.card().options);
  lab::usage_check((cait != nullptr) == is_cait(study), "{} is a {}; give --model {}", o.weights.path(),
                   cait ? "CaiT" : "ViT", cait ? "cait" : "vit");
  std::visit(
      [&](const auto& there) {
        decide("--dim", network.dim, there.dim);
        decide("--heads", network.heads, there.heads);
        decide("--depth", o.depth, there.depth);
        decide("--mlp-ratio", o.mlp_ratio, there.mlp_ratio);
        decide("--patch", network.patch, there.patch);
        decide("--norm-eps", o.norm_eps, there.norm_eps);
        if (o.weights.evaluates() || there.method->name != "pre" || !o.has_layerscale())
          o.weights.decide_gate(cli, o.gate, *there.method);
        else if (!o.init_is_of_gate)
          o.weights.take_init(cli, o.init);
      },
      o.weights.card().options);
  if (!cait) return decide("--pool", network.pool, std::get<nn::ViTOptions>(o.weights.card().options).pool);
  decide("--depth-token-only", o.depth_token_only, cait->depth_token_only);
  const bool talks = cait->head_mix != nn::HeadMix::none;
  if (!talks || o.talking_heads == nn::HeadMix::none)
    decide("--talking-heads", o.talking_heads, talks ? nn::HeadMix::cait : nn::HeadMix::none);
}

void supply(VitSettings& o, vision::Study& study) {
  const lab::Cli& cli = study.cli();
  o.weights.supply({.heads = cli.given("--heads") ? std::optional(study.network().heads) : std::nullopt,
                    .norm_eps = cli.given("--norm-eps") ? std::optional(o.norm_eps) : std::nullopt,
                    .pool = cli.given("--pool"),
                    .method = cli.given("--gate") ? o.gate : ""});
}

template <class Model>
void train_network(const VitSettings& o, lab::Trial& trial, Model& model, nn::KeyMap names) {
  const auto layerscale = o.has_layerscale() ? std::optional(o.init) : std::nullopt;
  if (o.weights.given()) o.weights.put_into(model, trial, layerscale);
  model.checkpoint_blocks(o.checkpoint);
  trial.save_under(std::move(names));
  lab::Observer observer;
  if constexpr (std::is_same_v<Model, nn::CaiT>)
    if (model.options().drop_key.rate > 0)
      observer.before = [&](std::int64_t step) {
        if (step % drop_logged_every == 0) trial.log(vision::dropped_keys(model, trial.options().batch));
      };
  trial.train(model, observer);
  vision::attach_attention(trial, model);
}

}  // namespace

int plumb::lab::vit(int argc, const char* const* argv) {
  vision::Study study(
      "vit",
      "Trains a ViT or a CaiT with any residual method; or evaluates trained weights (timm's names) on "
      "images, or continues their training. With --save-weights it saves the weights of each trial that "
      "does not diverge, under timm's names.");
  study.defaults({.steps = 300, .warmup = 30, .lr = 1e-3});
  VitSettings o;
  declare(o, study);
  study.cli().action([&]() -> std::optional<int> {
    if (!o.weights.evaluates()) return std::nullopt;
    supply(o, study);
    take_sizes(o, study);
    return vision::evaluate_images(o.weights, study.options(), study.images(), study.cli());
  });
  study.cli().derive([&] {
    supply(o, study);
    o.init_is_of_gate = vision::take_init_of_gate(study.cli(), o.gate, o.depth, o.init);
    if (o.weights.trains_on()) take_sizes(o, study), o.weights.take_images(study.cli(), study.images());
    if (is_cait(study)) vision::derive_cait(o, study);
  });
  study.check([&](const lab::DataFacts& data) {
    if (is_cait(study) && study.network().drop.drop_key > 0)
      vision::note_drop_key(o, study.network(), vision::image_sizes(data));
  });
  study.columns({lab::train_loss, lab::val_loss, vision::val_accuracy});
  study.output(vision::attention_section);
  study.measure_layers();
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViTOptions options = vision::vit(
        trial,
        {.depth = o.depth, .method = o.has_layerscale() ? nn::methods::layerscale(o.init) : nn::MethodChoice(o.gate)});
    options.mlp_ratio = o.mlp_ratio, options.norm_eps = o.norm_eps;
    if (is_cait(study)) {
      nn::CaiT model(vision::cait_options(o, options));
      return train_network(o, trial, model, nn::timm_cait(options.channels));
    }
    nn::ViT model(options);
    train_network(o, trial, model, nn::timm_vit(options.channels));
  });
}
