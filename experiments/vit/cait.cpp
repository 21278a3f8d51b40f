#include <algorithm>
#include <cmath>

#include "experiments/vit/vit.h"
#include "nn/gates/layerscale.h"
#include "nn/models/cait_presets.h"

namespace plumb::vision {
namespace {

const std::string usual_preset = "cait-paper-xxs24";

// The constants of a preset that are options, too.
constexpr const char* constants_with_options[] = {"dim",       "heads",        "depth",     "depth_token_only",
                                                  "mlp_ratio", "norm_eps",     "init",      "drop_path",
                                                  "attn_drop", "weight_decay", "clip_norm", "label_smoothing"};

// The settings of a preset: its constants that are options, and ours for small images and short training.
Settings settings_of(const nn::CaitPreset& preset) {
  Settings rows{
      {"--model cait", "named by the preset"},
      {"--patch 4",
       fmt::format("ours, for small images; {} has {:g} at 224 x 224", preset.name, preset.at("patch").value)},
      {"--gate layerscale --drop-path-schedule", "Touvron et al. 2021"},
      {"--recipe paper", "ours: each method has the recipe of its paper, as in nn::CaiT"},
      {"--weight-init truncated_normal", preset.at("weight_std").source},
      {"--talking-heads", preset.at("talking_heads_std").source},
      {"--drop-key --drop-key-schedule --drop-key-shape --drop-key-window --drop-key-sharing --drop-key-match "
       "--empty-rows",
       "ours: CaiT has no DropKey"},
      {"--drop-head", "ours: CaiT has no DropHead"},
      {"--drop-path-form", "facebookresearch/deit, through timm's DropPath"},
      {"--optimizer", preset.at("adam_eps").source},
      {"--schedule",
       "ours: updated per step, starts after the warm-up; timm's CosineLRScheduler also counts the warm-up"},
      {"--augment", "ours: no augmentation, for short training; the published recipe is deit (facebookresearch/deit)"},
      {"--ema-decay", fmt::format("ours: the decay {:g} of {} is too slow for short training",
                                  preset.at("ema_decay").value, preset.name)},
      {fmt::format("--steps {} --warmup 0", StudyOptions().steps)},
      {"--steps", "ours: a short training"}};
  for (std::string name : constants_with_options) {
    const auto& [value, source] = preset.at(name);
    std::ranges::replace(name, '_', '-');
    rows.push_back({fmt::format("--{} {}", name, value), source});
  }
  return rows;
}

// The preset of the call.
nn::CaitPreset preset_of(const Cli& cli) {
  const std::string name = cli.declared("--preset")->text();
  return nn::cait_preset(name.empty() ? usual_preset : name);
}

std::string further_constants(const nn::CaitPreset& preset) {
  std::string text = fmt::format(
      "Further constants of {}. --lr and --warmup are computed from lr_per_512, warmup_epochs and epochs.\n"
      "The rates lr_start and lr_end, AdamW's constants, initial values and stage 2 are used as listed. "
      "--augment deit\nuses the constants of augmentation. This program does not use the others.\n",
      preset.name);
  for (const auto& [name, constant] : preset.constants)
    if (std::ranges::find(constants_with_options, name) == std::end(constants_with_options))
      text += fmt::format("  {:<24} {:<8g} [{}]\n", name, constant.value, constant.source);
  return text;
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

std::string preset_difference(const std::vector<std::string>& compared) {
  usage_check(compared.size() == 2, "--preset-diff: expected two presets, got {}", compared.size());
  const auto found = nn::differences(nn::cait_preset(compared[0]), nn::cait_preset(compared[1]));
  std::string text = fmt::format("{:<18} {:<18} {}\n", "", compared[0], compared[1]);
  for (const auto& [name, a, b] : found)
    text += fmt::format("{:<18} {:<18g} {:g}\n  {}: {}\n  {}: {}\n", name, a.value, b.value, compared[0], a.source,
                        compared[1], b.source);
  return found.empty() ? fmt::format("{} and {} have the same constants\n", compared[0], compared[1]) : text;
}

}  // namespace

void VitStudy::declare_cait() {
  Cli& cli = this->cli();
  cli.section("Model");
  cli.option("--depth-token-only", &depth_token_only, "Number of blocks of stage 2 of a CaiT, for the class token")
      .at_least(1)
      .at_most(largest_size);
  cli.option("--talking-heads", &talking_heads,
             "Mixes between heads in stage 1 of a CaiT: cait (random start), identity (no mixing at the start) or none")
      .one_of("start of talking heads");
  for (const std::string& name : nn::cait_preset_names()) {
    const nn::CaitPreset preset = nn::cait_preset(name);
    cli.preset(name,
               fmt::format("dim {:g}, {:g} heads, {:g} blocks", preset.at("dim").value, preset.at("heads").value,
                           preset.at("depth").value),
               settings_of(preset));
  }
  cli.default_preset([](const Cli::TypedValue& value) { return value("--model") == "cait" ? usual_preset : ""; });
  cli.listing("--list-presets", "Print the presets of CaiTs and their main differences", list_presets);
  cli.listing("--preset-diff", &compared, "Print the constants that differ between two presets of CaiTs",
              [this] { return preset_difference(compared); })
      .one_of("preset", nn::cait_preset_names())
      .pair()
      .value_name("A B");
  check([this](const DataFacts& data) {
    if (!is_cait() || network().drop.drop_key == 0) return;
    const bool mixed = talking_heads != nn::HeadMix::none && network().drop.drop_key_sharing != DropSharing::heads;
    note_error(fmt::format("DropKey: {}{}\n", network().describe_drop_key(image_sizes(data)),
                           mixed ? "; talking heads mix a key that one head drops in again from other heads, unless "
                                   "--drop-key-sharing heads is given"
                                 : ""));
  });
  cli.config_note([this, &cli] { return is_cait() ? further_constants(preset_of(cli)) : ""; });
  cli.examples(
      {"--preset cait-paper-xxs24 --print-config", "--preset-diff cait-paper-xxs36 cait-timm-xxs36",
       "--model cait --weights cait_xxs24_224.safetensors --image-folder flowers --fine-tune --lr 5e-5 --steps 1000"});
}

void VitStudy::derive_cait() {
  const nn::CaitPreset preset = preset_of(cli());
  if (static_cast<double>(depth) != preset.at("depth").value && !init_is_of_gate && !cli().given("--init") &&
      !weights.given()) {
    init = nn::layerscale_init(depth);
    cli().explain("--init", "computed from --depth; " + nn::layerscale_init_source(depth));
  }
  const nn::Constant &rate = preset.at("lr_per_512"), &warmup = preset.at("warmup_epochs"),
                     &epochs = preset.at("epochs");
  if (!cli().given("--lr")) {
    optimization().lr = rate.value * static_cast<double>(options().batch) / 512;
    cli().explain("--lr", fmt::format("{:g} x batch / 512; {}", rate.value, rate.source));
  }
  if (!cli().given("--warmup")) {
    options().warmup = std::llround(static_cast<double>(options().steps) * warmup.value / epochs.value);
    cli().explain("--warmup", fmt::format("{:g} of {:g} epochs, as a share of the steps; {}", warmup.value,
                                          epochs.value, warmup.source));
  }
  optimization().ends = {preset.at("lr_start").value, preset.at("lr_end").value};
  optimization().ema_warm_up = false;
}

}  // namespace plumb::vision
