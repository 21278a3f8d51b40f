// Trains a ViT (Dosovitskiy et al. 2021; DeiT, Touvron et al. 2021) with any residual method. Also evaluates trained
// weights or continues their training.
#include "experiments/programs.h"

#include "experiments/lab/options/gate_init.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/pictures.h"
#include "experiments/lab/signals/attention_images.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/study/pretrained_weights.h"
#include "experiments/lab/study/study.h"
#include "nn/gates/methods.h"
#include "nn/io/weights.h"

using namespace plumb;

namespace {

struct VitSettings {
  std::string gate = "pre";
  std::int64_t depth = 12;
  double init = 1e-4, mlp_ratio = 4;
  bool init_is_of_gate = false;
  lab::PretrainedWeights weights;
};

struct Size {
  const char* name;
  std::int64_t dim, heads;
};
constexpr Size sizes[] = {{"tiny", 192, 3}, {"small", 384, 6}, {"base", 768, 12}};

void declare(VitSettings& o, lab::Study& study) {
  lab::Cli& cli = study.cli();
  cli.section("Model");
  cli.option("--gate", &o.gate, "Residual method").one_of_methods("gate", true);
  cli.option("--depth", &o.depth, "Number of blocks").at_least(1).at_most(lab::largest_size);
  cli.option("--mlp-ratio", &o.mlp_ratio, "Hidden width of the MLPs, as a multiple of --dim")
      .at_least(1)
      .at_most(lab::largest_size);
  cli.option("--init", &o.init,
             "Initial value of LayerScale; with --weights without LayerScale it is 1, which keeps the network's output")
      .at_least(0)
      .at_most(10);
  o.weights.declare(cli);
  for (const Size& size : sizes)
    cli.preset(fmt::format("vit-{}", size.name),
               fmt::format("12 blocks of width {}, {} heads, patches of 16, a class token", size.dim, size.heads),
               [&study, &o, &cli, size] {
                 const std::string source =
                     fmt::format("timm 1.0.31, vision_transformer.py, vit_{}_patch16_224", size.name);
                 study.network().dim = size.dim, study.network().heads = size.heads, study.network().patch = 16,
                 study.network().pool = nn::Pool::token;
                 o.depth = 12;
                 for (const char* option : {"--dim", "--heads", "--patch", "--pool", "--depth"})
                   cli.explain(option, source);
               });
  cli.example("--image-folder flowers --preset vit-tiny --augment deit --steps 20000");
  cli.example("--weights vit_tiny_patch16_224.safetensors --image-folder photos --normalization half --evaluate");
  cli.example(
      "--weights vit_tiny_patch16_224.safetensors --image-folder flowers --normalization half --gate layerscale "
      "--fine-tune --lr 5e-5 --steps 1000");
}

// Takes the sizes and the residual method of the network from the file of --weights. If the method in the file is pre
// and --gate is layerscale, the network gets LayerScale.
void take_sizes(VitSettings& o, lab::Study& study) {
  lab::Cli& cli = study.cli();
  lab::NetworkOptions& network = study.network();
  const auto* there = std::get_if<nn::ViTOptions>(&o.weights.card().options);
  lab::usage_check(there, "{} is a CaiT; use build/release/bin/cait", o.weights.path());
  o.weights.decide(cli, "--dim", network.dim, there->dim);
  o.weights.decide(cli, "--heads", network.heads, there->heads);
  o.weights.decide(cli, "--depth", o.depth, there->depth);
  o.weights.decide(cli, "--mlp-ratio", o.mlp_ratio, there->mlp_ratio);
  o.weights.decide(cli, "--patch", network.patch, there->patch);
  o.weights.decide(cli, "--pool", network.pool, there->pool);
  if (o.weights.trains_on() && there->gate->name == "pre" && nn::method_text(o.gate).name == "layerscale") {
    if (!o.init_is_of_gate) o.weights.take_init(cli, o.init);
    return;
  }
  o.weights.decide_gate(cli, o.gate, *there->gate);
}

bool is_layerscale(const VitSettings& o) { return nn::method_text(o.gate).name == "layerscale"; }

nn::GateChoice gate_of(const VitSettings& o) {
  return is_layerscale(o) ? nn::methods::layerscale(o.init) : nn::GateChoice(o.gate);
}

}  // namespace

int plumb::lab::vit(int argc, const char* const* argv) {
  lab::Study study("vit",
                   "Trains a ViT with any residual method; or evaluates trained weights (timm's names) on images, or "
                   "continues their training. With --save-weights it saves the weights of each trial that does not "
                   "diverge, under timm's names.");
  study.options().steps = 300, study.options().warmup = 30;
  study.optimization().lr = 1e-3;
  VitSettings o;
  declare(o, study);
  const auto supply = [&] {
    const lab::Cli& cli = study.cli();
    o.weights.supply({.heads = cli.given("--heads") ? std::optional(study.network().heads) : std::nullopt,
                      .pool = cli.given("--pool"),
                      .method = cli.given("--gate") ? o.gate : ""});
  };
  study.cli().action([&]() -> std::optional<int> {
    if (!o.weights.evaluates()) return std::nullopt;
    supply();
    take_sizes(o, study);
    return lab::evaluate_images(o.weights, study.options(), study.cli());
  });
  study.cli().derive([&] {
    supply();
    o.init_is_of_gate = lab::take_init_of_gate(study.cli(), o.gate, o.depth, o.init);
    if (o.weights.trains_on()) take_sizes(o, study), o.weights.take_images(study.cli(), study.options());
  });
  study.columns({"train_loss", "val_loss", "val_accuracy"});
  study.show({"train_loss", "val_loss", "val_accuracy"});
  study.output(lab::attention_section);
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViTOptions options = trial.vit({.depth = o.depth, .gate = gate_of(o)});
    options.mlp_ratio = o.mlp_ratio;
    nn::ViT model(options);
    if (o.weights.given()) o.weights.put_into(model, trial, is_layerscale(o) ? std::optional(o.init) : std::nullopt);
    trial.save_under(nn::timm_vit(options.channels));
    trial.train(model, lab::record_layers(trial, model.stack()));
    lab::attach_attention(trial, model);
  });
}
