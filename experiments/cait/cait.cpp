// Trains a CaiT on any data set. The CaiT has a published configuration, or the same architecture at another size.
#include "experiments/programs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <variant>

#include "autograd/autograd.h"
#include "experiments/lab/options/drop_options.h"
#include "experiments/lab/options/gate_init.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/pictures.h"
#include "experiments/lab/signals/attention_images.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/study/pretrained_weights.h"
#include "experiments/lab/study/study.h"
#include "experiments/lab/train/train.h"
#include "nn/nn.h"

using namespace plumb;

namespace {

// Number of steps between two logs of DropKey's statistics. The statistics are not logged at every step, because each
// log draws every mask again.
constexpr std::int64_t drop_logged_every = 10;

// The initial values of the mixes between heads in stage 1.
enum class TalkingHeads {
  cait,      // random initial values, as published
  identity,  // identity matrices, which do not mix at the start
  none       // attention without mixes
};
constexpr auto names_of(TalkingHeads) { return std::array{"cait", "identity", "none"}; }

struct CaitSettings {
  nn::CaitPreset preset;  // the published constants; options do not change them
  std::int64_t dim = 0, heads = 0, depth = 0, depth_token_only = 0, patch = 0;
  double mlp_ratio = 0, norm_eps = 0, init = 0, ema_decay = 0;
  double lr = 0, lr_start = 0, lr_end = 0, weight_decay = 0, adam_eps = 0, clip_norm = 0, label_smoothing = 0;
  std::string gate = "layerscale";
  TalkingHeads talking_heads = TalkingHeads::cait;
  lab::DropOptions drop;
  lab::AugmentOptions augment;
  bool checkpoint = false;
  std::vector<std::string> diff;
  lab::PretrainedWeights weights;

  // The constants of a preset that are also options.
  std::map<std::string, std::variant<std::int64_t*, double*>> fields() {
    return {{"dim", &dim},
            {"heads", &heads},
            {"depth", &depth},
            {"depth_token_only", &depth_token_only},
            {"mlp_ratio", &mlp_ratio},
            {"patch", &patch},
            {"norm_eps", &norm_eps},
            {"init", &init},
            {"drop_path", &drop.drop_path},
            {"attn_drop", &drop.attn_drop},
            {"lr_start", &lr_start},
            {"lr_end", &lr_end},
            {"weight_decay", &weight_decay},
            {"adam_eps", &adam_eps},
            {"clip_norm", &clip_norm},
            {"label_smoothing", &label_smoothing},
            {"ema_decay", &ema_decay}};
  }
};

std::string option_of(std::string constant) {
  std::ranges::replace(constant, '_', '-');
  return "--" + constant;
}

void apply(CaitSettings& o, lab::Cli& cli, const nn::CaitPreset& preset) {
  o.preset = preset;
  for (const auto& [name, field] : o.fields()) {
    const nn::Constant& constant = preset.at(name);
    std::visit(
        [&](auto* variable) { *variable = static_cast<std::remove_pointer_t<decltype(variable)>>(constant.value); },
        field);
    cli.explain(option_of(name), constant.source);
  }
  o.lr = preset.at("lr_per_512").value;
  o.patch = 4;
  o.ema_decay = 0;
  cli.explain("--ema-decay", fmt::format("ours: the decay {:g} of {} is too slow for short training",
                                         preset.at("ema_decay").value, preset.name));
  cli.explain("--augment",
              "ours: no augmentation, for short training; the published recipe is deit (facebookresearch/deit)");
  cli.explain("--gate", "Touvron et al. 2021");
  cli.explain("--talking-heads", preset.at("talking_heads_std").source);
  for (const char* option : {"--drop-key", "--drop-key-schedule", "--drop-key-shape", "--drop-key-window",
                             "--drop-key-sharing", "--drop-key-match", "--empty-rows"})
    cli.explain(option, "ours: CaiT has no DropKey");
  cli.explain("--drop-head", "ours: CaiT has no DropHead");
  cli.explain("--drop-path-schedule", "Touvron et al. 2021");
  cli.explain("--drop-path-form", "facebookresearch/deit, through timm's DropPath");
  cli.explain("--patch",
              fmt::format("ours, for small images; {} has {:g} at 224 x 224", preset.name, preset.at("patch").value));
}

bool is_layerscale(const CaitSettings& o) { return nn::method_text(o.gate).name == "layerscale"; }

// Takes the sizes of the network from the file of --weights.
void take_sizes(CaitSettings& o, lab::Cli& cli, bool init_is_of_gate) {
  const auto* there = std::get_if<nn::CaiTOptions>(&o.weights.card().options);
  lab::usage_check(there, "{} is a ViT; use build/release/bin/vit", o.weights.path());
  o.weights.decide(cli, "--dim", o.dim, there->dim);
  o.weights.decide(cli, "--heads", o.heads, there->heads);
  o.weights.decide(cli, "--depth", o.depth, there->depth);
  o.weights.decide(cli, "--depth-token-only", o.depth_token_only, there->depth_token_only);
  o.weights.decide(cli, "--mlp-ratio", o.mlp_ratio, there->mlp_ratio);
  o.weights.decide(cli, "--patch", o.patch, there->patch);
  o.weights.decide(cli, "--norm-eps", o.norm_eps, there->norm_eps);
  const bool talks = there->head_mix != nn::HeadMix::none;
  if (!talks || o.talking_heads == TalkingHeads::none)
    o.weights.decide(cli, "--talking-heads", o.talking_heads, talks ? TalkingHeads::cait : TalkingHeads::none);
  if (o.weights.evaluates() || there->gate->name != "pre" || !is_layerscale(o))
    o.weights.decide_gate(cli, o.gate, *there->gate);
  else if (!init_is_of_gate)
    o.weights.take_init(cli, o.init);
}

void supply(CaitSettings& o, const lab::Cli& cli) {
  o.weights.supply({.heads = cli.given("--heads") ? std::optional(o.heads) : std::nullopt,
                    .norm_eps = cli.given("--norm-eps") ? std::optional(o.norm_eps) : std::nullopt,
                    .method = cli.given("--gate") ? o.gate : ""});
}

// Sets the constants that the published recipe computes from the size of the network and the length of the training.
void derive(CaitSettings& o, lab::Cli& cli, lab::StudyOptions& run) {
  supply(o, cli);
  const bool init_is_of_gate = lab::take_init_of_gate(cli, o.gate, o.depth, o.init);
  if (o.weights.trains_on()) take_sizes(o, cli, init_is_of_gate), o.weights.take_images(cli, run);
  if (static_cast<double>(o.depth) != o.preset.at("depth").value && !init_is_of_gate && !cli.given("--init") &&
      !o.weights.given()) {
    o.init = nn::layerscale_init(o.depth);
    cli.explain("--init", "computed from --depth; " + nn::layerscale_init_source(o.depth));
  }
  const nn::Constant &rate = o.preset.at("lr_per_512"), &warmup = o.preset.at("warmup_epochs"),
                     &epochs = o.preset.at("epochs");
  if (!cli.given("--lr")) {
    o.lr = rate.value * static_cast<double>(run.batch) / 512;
    cli.explain("--lr", fmt::format("{:g} x batch / 512; {}", rate.value, rate.source));
  }
  if (!cli.given("--warmup")) {
    run.warmup = std::llround(static_cast<double>(run.steps) * warmup.value / epochs.value);
    cli.explain("--warmup", fmt::format("{:g} of {:g} epochs, as a share of the steps; {}", warmup.value, epochs.value,
                                        warmup.source));
  }
}

std::string further_constants(CaitSettings& o) {
  std::string text = fmt::format(
      "Further constants of {}. --lr and --warmup are computed from lr_per_512, warmup_epochs and epochs.\n"
      "Betas, initial values and stage 2 are used as listed. --augment deit uses the constants of augmentation.\n"
      "This program does not use the others.\n",
      o.preset.name);
  const auto fields = o.fields();
  for (const auto& [name, constant] : o.preset.constants)
    if (!fields.contains(name)) text += fmt::format("  {:<24} {:<8g} [{}]\n", name, constant.value, constant.source);
  return text +
         fmt::format(
             "  {:<24} {:<8} [{}]\n", "schedule", "cosine",
             "ours: updated per step, starts after the warm-up; timm's CosineLRScheduler also counts the warm-up");
}

std::string list_presets() {
  std::string text;
  for (const std::string& name : nn::cait_preset_names()) {
    const nn::CaitPreset p = nn::cait_preset(name);
    text += fmt::format("{:<18} dim {:>3}, {:>2} heads, {} + {} blocks, init {:<5g}, drop-path {:<4g}  [{}]\n", name,
                        p.at("dim").value, p.at("heads").value, p.at("depth").value, p.at("depth_token_only").value,
                        p.at("init").value, p.at("drop_path").value, p.at("init").source);
  }
  return text;
}

std::string preset_difference(const CaitSettings& o) {
  lab::usage_check(o.diff.size() == 2, "--preset-diff: expected two presets, got {}", o.diff.size());
  const auto found = nn::differences(nn::cait_preset(o.diff[0]), nn::cait_preset(o.diff[1]));
  std::string text = fmt::format("{:<18} {:<18} {}\n", "", o.diff[0], o.diff[1]);
  for (const auto& [name, a, b] : found)
    text += fmt::format("{:<18} {:<18g} {:g}\n  {}: {}\n  {}: {}\n", name, a.value, b.value, o.diff[0], a.source,
                        o.diff[1], b.source);
  return found.empty() ? fmt::format("{} and {} have the same constants\n", o.diff[0], o.diff[1]) : text;
}

void declare(CaitSettings& o, lab::Cli& cli) {
  constexpr double largest = lab::largest_size;
  cli.section("Model");
  cli.option("--dim", &o.dim, "Width").at_least(1).at_most(largest);
  cli.option("--heads", &o.heads, "Attention heads").at_least(1).at_most(largest);
  cli.option("--depth", &o.depth, "Number of blocks of stage 1, over the patches").at_least(1).at_most(largest);
  cli.option("--depth-token-only", &o.depth_token_only, "Number of blocks of stage 2, for the class token")
      .at_least(1)
      .at_most(largest);
  cli.option("--mlp-ratio", &o.mlp_ratio, "Hidden width of the MLPs, as a multiple of --dim")
      .at_least(1)
      .at_most(largest);
  cli.option("--patch", &o.patch, "Side of a patch in pixels").at_least(1).at_most(largest);
  cli.option("--norm-eps", &o.norm_eps, "Epsilon of the norms").at_least(least_eps);
  cli.option("--gate", &o.gate, "Residual method of stage 1; stage 2 always uses LayerScale")
      .one_of_methods("gate", true);
  cli.option("--init", &o.init, "Initial value of LayerScale").at_least(0).at_most(10);
  cli.option("--talking-heads", &o.talking_heads,
             "Mixes between heads in stage 1: cait (random start), identity (no mixing at the start) or none")
      .one_of("start of talking heads");
  o.drop.declare(cli);
  cli.section("Training");
  cli.option("--lr", &o.lr, "Peak learning rate; the default is the preset's rate x batch / 512").above(0);
  cli.by_rule("--lr");
  cli.by_rule("--warmup");
  cli.option("--lr-start", &o.lr_start, "Learning rate of the first warm-up step").at_least(0);
  cli.option("--lr-end", &o.lr_end, "Learning rate at the end of the cosine; at most the peak").at_least(0);
  cli.option("--weight-decay", &o.weight_decay,
             "Weight decay of weights; not of gates, norms, biases, class token and positions")
      .at_least(0);
  cli.option("--adam-eps", &o.adam_eps, "Epsilon of AdamW").above(0);
  cli.option("--clip-norm", &o.clip_norm, "Largest gradient norm (clipping); 0: no clipping").at_least(0);
  cli.option("--label-smoothing", &o.label_smoothing, "Share of the target that is spread evenly over all classes")
      .at_least(0)
      .below(1);
  cli.option("--ema-decay", &o.ema_decay,
             "Decay of a moving average of the weights, which is evaluated and saved instead of them; 0: no average")
      .at_least(0)
      .below(1);
  o.augment.declare(cli);
  o.weights.declare(cli);
  cli.section("Machine");
  cli.option("--checkpoint", &o.checkpoint, "Save memory: recompute the blocks of stage 1 in the backward pass")
      .scope(lab::Scope::speed);
  for (const std::string& name : nn::cait_preset_names()) {
    const nn::CaitPreset preset = nn::cait_preset(name);
    cli.preset(name,
               fmt::format("dim {:g}, {:g} heads, {:g} blocks", preset.at("dim").value, preset.at("heads").value,
                           preset.at("depth").value),
               [&o, &cli, preset] { apply(o, cli, preset); });
  }
  cli.default_preset("cait-paper-xxs24");
  cli.listing("--list-presets", "Print the presets and their main differences", list_presets);
  cli.listing("--preset-diff", &o.diff, "Print the constants that differ between two presets, with their sources",
              [&o] { return preset_difference(o); })
      .one_of("preset", nn::cait_preset_names())
      .pair()
      .value_name("A B");
  cli.config_note([&o] { return further_constants(o); });
  cli.example("--preset cait-paper-xxs24 --print-config");
  cli.example("--preset-diff cait-paper-xxs36 cait-timm-xxs36");
  cli.example("--weights cait_xxs24_224.safetensors --image-folder photos --class-names imagenet.txt --evaluate");
  cli.example(
      "--weights cait_xxs24_224.safetensors --image-folder flowers --fine-tune --lr 5e-5 --steps 1000 --save-weights");
  cli.example("--preset cait-timm-s24 --dim 48 --heads 2 --depth 12 --lr 1e-3 --seeds 0..2");
}

KeyGrid grid_of(const CaitSettings& o, const lab::ImageSet& images) {
  return {images.height / o.patch, images.height / o.patch};
}

// Describes DropKey for these images; "none" without DropKey. Throws UsageError if the shape of the DropKey mask does
// not fit the images.
std::string describe_drop_key(const CaitSettings& o, const lab::ImageSet& images) {
  const KeyGrid grid = grid_of(o, images);
  std::string text = o.drop.describe_key(grid.height * grid.width, grid);
  if (o.drop.drop_key > 0 && o.talking_heads != TalkingHeads::none && o.drop.drop_key_sharing != DropSharing::heads)
    text +=
        "; talking heads mix a key that one head drops in again from other heads, unless --drop-key-sharing heads is "
        "given";
  return text;
}

void check_for(const CaitSettings& o, const lab::ImageSet& images) {
  lab::usage_check(o.dim % o.heads == 0, "--dim {} is not a multiple of --heads {}; change one of them", o.dim,
                   o.heads);
  lab::usage_check(images.height % o.patch == 0, "--patch {} does not divide the image side {}; choose another patch",
                   o.patch, images.height);
  describe_drop_key(o, images);
}

nn::CaiTOptions model_options(CaitSettings o, const lab::Trial& run) {
  const lab::ImageSet& images = run.data().train;
  nn::CaitPreset resolved = o.preset;
  for (const auto& [name, field] : o.fields())
    resolved.at(name).value = std::visit([](const auto* variable) { return static_cast<double>(*variable); }, field);
  nn::CaiTOptions model = nn::options_of(
      resolved, {.image = images.height, .channels = images.channels, .classes = images.classes, .seed = run.seed()});
  model.gate = o.gate;
  model.drop_key = o.drop.key();
  model.drop_head = o.drop.head(run.steps());
  model.drop_path = o.drop.path();
  if (o.talking_heads == TalkingHeads::none) model.head_mix = nn::HeadMix::none;
  if (o.talking_heads == TalkingHeads::identity) model.head_mix = nn::HeadMix::identity;
  return model;
}

// The learning rate: a linear warm-up from lr_start to lr, then a cosine decay to lr_end.
nn::LearningRate schedule(const CaitSettings& o, std::int64_t warmup, std::int64_t steps) {
  const double peak = o.lr, start = std::min(o.lr_start, peak), end = std::min(o.lr_end, peak);
  return nn::LearningRate([=, shape = nn::cosine(1, steps - warmup)](std::int64_t s) {
    if (s < warmup) return start + (peak - start) * static_cast<double>(s) / static_cast<double>(warmup);
    return end + (peak - end) * shape.at(s - warmup);
  });
}

// DropKey's statistics of the current step, as means over the attention layers of stage 1.
lab::Values dropped(const nn::CaiT& model, std::int64_t batch) {
  const std::int64_t side = model.options().image / model.options().patch;
  double ratio = 0, empty = 0;
  for (const auto& block : model.blocks()) {
    const nn::DropKeyStatistics s = dynamic_cast<const nn::SelfAttention&>(block->branch("attn"))
                                        .drop_key_statistics(batch, side * side, side * side);
    ratio += s.drop_ratio / static_cast<double>(model.blocks().size());
    empty += s.empty_rows / static_cast<double>(model.blocks().size());
  }
  return {{"drop_ratio", ratio}, {"empty_rows", empty}};
}

void train(const CaitSettings& o, lab::Trial& run) {
  nn::CaiT model(model_options(o, run));
  nn::audit_init(model, run.seed());
  if (o.weights.given()) o.weights.put_into(model, run, is_layerscale(o) ? std::optional(o.init) : std::nullopt);
  model.checkpoint_blocks(o.checkpoint);
  run.calibrate(model);
  nn::AdamW optimizer(model.parameters(), {.lr = schedule(o, run.warmup(), run.steps()),
                                           .beta1 = o.preset.at("beta1").value,
                                           .beta2 = o.preset.at("beta2").value,
                                           .eps = o.adam_eps,
                                           .weight_decay = o.weight_decay,
                                           .clip_norm = o.clip_norm});
  std::optional<nn::Ema> ema;
  if (o.ema_decay > 0) ema.emplace(model, nn::EmaOptions{.decay = o.ema_decay});
  run.track(model, optimizer, ema ? &*ema : nullptr);
  run.save_under(nn::timm_cait(model.options().channels));
  lab::ImageTask task(run.data().train, run.task_settings(), model, run.normalization(),
                      o.augment.make(run.data().name, run.data().train, run.options().batch), o.label_smoothing);
  const auto watch = [&, layers = lab::record_layers(run, model.stack())](std::int64_t step) {
    if (o.drop.drop_key > 0 && step % drop_logged_every == 0) run.log(dropped(model, run.options().batch));
    return layers(step);
  };
  if (!lab::train(run, task, optimizer, ema ? &*ema : nullptr, watch, 1)) return;
  const lab::Values evaluation = run.evaluate();
  if (!std::isfinite(lab::value_of(evaluation, "val_loss")))
    return run.mark_diverged(run.steps() - 1, "the validation loss is not finite");
  run.measure({{"train_loss", run.recent_loss()}});
  run.log(evaluation);
  std::optional<nn::EmaScope> averaged;
  if (ema) averaged.emplace(*ema);
  lab::attach_attention(run, model);
}

}  // namespace

int plumb::lab::cait(int argc, const char* const* argv) {
  lab::Study study("cait",
                   "Trains a CaiT, as published or at another size, and names the source of each constant. With "
                   "--save-weights it saves the weights of each trial that does not diverge, under timm's names.",
                   {.network = false, .optimization = false});
  CaitSettings o;
  declare(o, study.cli());
  study.cli().action([&]() -> std::optional<int> {
    if (!o.weights.evaluates()) return std::nullopt;
    supply(o, study.cli());
    take_sizes(o, study.cli(), true);
    return lab::evaluate_images(o.weights, study.options(), study.cli());
  });
  study.cli().derive([&] { derive(o, study.cli(), study.options()); });
  study.check([&](const lab::DataFacts& data) {
    const lab::ImageSet& images = data.image_sizes();
    check_for(o, images);
    o.augment.make(study.options().data, images, study.options().batch);
    if (o.drop.drop_key > 0) lab::note_error(fmt::format("DropKey: {}\n", describe_drop_key(o, images)));
  });
  study.output(lab::attention_section);
  study.output({"layers.csv", lab::layers_csv});
  return study.run(argc, argv, [&](lab::Trial& trial) { train(o, trial); });
}
