// Trains a CaiT: a published configuration, or its shape at another size, on any data set.
#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

#include "autograd/autograd.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/experiment.h"
#include "nn/nn.h"

using namespace plumb;

namespace {

struct Options {
  nn::CaitPreset preset;  // as published: values that options change are in them alone
  std::int64_t dim = 0, heads = 0, depth = 0, depth_token_only = 0, mlp_ratio = 0, patch = 0;
  double norm_eps = 0, init = 0, drop_path = 0, drop_key = 0;
  double lr = 0, lr_start = 0, lr_end = 0, weight_decay = 0, adam_eps = 0, clip_norm = 0, label_smoothing = 0;
  std::string gate = "layerscale", talking_heads = "cait", drop_key_schedule = "constant";
  bool checkpoint = false;
  std::vector<std::string> diff;

  // The preset's constants that are options, too.
  std::map<std::string, std::variant<std::int64_t*, double*>> fields() {
    return {{"dim", &dim},
            {"heads", &heads},
            {"depth", &depth},
            {"depth_token_only", &depth_token_only},
            {"mlp_ratio", &mlp_ratio},
            {"patch", &patch},
            {"norm_eps", &norm_eps},
            {"init", &init},
            {"drop_path", &drop_path},
            {"lr_start", &lr_start},
            {"lr_end", &lr_end},
            {"weight_decay", &weight_decay},
            {"adam_eps", &adam_eps},
            {"clip_norm", &clip_norm},
            {"label_smoothing", &label_smoothing}};
  }
} o;

std::string option_of(std::string constant) {
  std::ranges::replace(constant, '_', '-');
  return "--" + constant;
}

void apply(lab::Cli& cli, const nn::CaitPreset& preset) {
  o.preset = preset;
  for (const auto& [name, field] : o.fields()) {
    const nn::Constant& constant = preset.at(name);
    std::visit([&](auto* variable) { *variable = static_cast<std::remove_pointer_t<decltype(variable)>>(constant.value); }, field);
    cli.explain(option_of(name), constant.source);
  }
  o.lr = preset.at("lr_per_512").value;
  o.patch = 4;
  cli.explain("--patch", fmt::format("ours, for images of 32 x 32; {} has {:g} at 224 x 224", preset.name, preset.at("patch").value));
}

// What the published recipe states by a rule, for the size and length of this run.
void derive(lab::Cli& cli, lab::RunOptions& run) {
  if (cli.given("--depth") && !cli.given("--init")) {
    o.init = nn::layerscale_init(o.depth);
    cli.explain("--init", "rule: by --depth; Touvron et al. 2021: 0.1 up to 18 blocks, 1e-5 for 24, 1e-6 deeper");
  }
  const nn::Constant &rate = o.preset.at("lr_per_512"), &warmup = o.preset.at("warmup_epochs"), &epochs = o.preset.at("epochs");
  if (!cli.given("--lr")) {
    o.lr = rate.value * static_cast<double>(run.batch) / 512;
    cli.explain("--lr", fmt::format("{:g} x batch / 512; {}", rate.value, rate.source));
  }
  if (!cli.given("--warmup")) {
    run.warmup = std::llround(static_cast<double>(run.steps) * warmup.value / epochs.value);
    cli.explain("--warmup", fmt::format("{:g} of {:g} epochs, as a share of the steps; {}", warmup.value, epochs.value, warmup.source));
  }
}

std::string further_constants() {
  std::string text =
      fmt::format("Further constants of {}; lr and warmup follow from the first three, the others this program does not have.\n", o.preset.name);
  const auto fields = o.fields();
  for (const auto& [name, constant] : o.preset.constants)
    if (!fields.contains(name)) text += fmt::format("  {:<24} {:<8g} [{}]\n", name, constant.value, constant.source);
  return text;
}

std::string list_presets() {
  std::string text;
  for (const std::string& name : nn::cait_preset_names()) {
    const nn::CaitPreset p = nn::cait_preset(name);
    text += fmt::format("{:<18} dim {:>3}, {:>2} heads, {} + {} blocks, init {:<5g}, drop-path {:<4g}  [{}]\n", name, p.at("dim").value,
                        p.at("heads").value, p.at("depth").value, p.at("depth_token_only").value, p.at("init").value, p.at("drop_path").value,
                        p.at("init").source);
  }
  return text;
}

std::string preset_difference() {
  lab::usage_check(o.diff.size() == 2, "--preset-diff expects two presets, got {}", o.diff.size());
  const auto found = nn::differences(nn::cait_preset(o.diff[0]), nn::cait_preset(o.diff[1]));
  std::string text = fmt::format("{:<18} {:<18} {}\n", "", o.diff[0], o.diff[1]);
  for (const auto& [name, a, b] : found)
    text += fmt::format("{:<18} {:<18g} {:g}\n  {}: {}\n  {}: {}\n", name, a.value, b.value, o.diff[0], a.source, o.diff[1], b.source);
  return found.empty() ? fmt::format("{} and {} have the same constants\n", o.diff[0], o.diff[1]) : text;
}

void declare(lab::Cli& cli) {
  cli.section("Model");
  cli.option("--dim", &o.dim, "Width").at_least(1);
  cli.option("--heads", &o.heads, "Attention heads").at_least(1);
  cli.option("--depth", &o.depth, "Blocks of stage 1, over the patches").at_least(1);
  cli.option("--depth-token-only", &o.depth_token_only, "Blocks of stage 2, for the class token").at_least(1);
  cli.option("--mlp-ratio", &o.mlp_ratio, "Hidden width of the MLPs, in widths").at_least(1);
  cli.option("--patch", &o.patch, "Side of a patch in pixels; images are 32x32").at_least(1);
  cli.option("--norm-eps", &o.norm_eps, "Epsilon of the norms").above(0);
  cli.option("--gate", &o.gate, "Residual method of stage 1; stage 2 keeps LayerScale").one_of("gate", nn::gate_names());
  cli.option("--init", &o.init, "LayerScale's initial value");
  cli.option("--talking-heads", &o.talking_heads, "Mixes of heads in stage 1: as CaiT starts them, from the identity, or none")
      .one_of("start of talking heads", {"cait", "identity", "none"});
  cli.section("Dropping");
  cli.option("--drop-path", &o.drop_path, "Stochastic depth in stage 1, uniform over blocks").at_least(0).below(1);
  cli.option("--drop-key", &o.drop_key, "DropKey in stage 1: chance that a query loses a key").at_least(0).at_most(1);
  cli.option("--drop-key-schedule", &o.drop_key_schedule, "Its course over depth").one_of("schedule", nn::drop_key_schedule_names());
  cli.section("Training");
  cli.option("--lr", &o.lr, "Peak learning rate; if not given, the preset's x batch / 512").above(0);
  cli.option("--lr-start", &o.lr_start, "Learning rate of the first step of a warm-up").at_least(0);
  cli.option("--lr-end", &o.lr_end, "Learning rate at the end of the cosine, or the peak if that is lower").at_least(0);
  cli.option("--weight-decay", &o.weight_decay, "Of weights; never of gates, norms, biases, class token and positions").at_least(0);
  cli.option("--adam-eps", &o.adam_eps, "AdamW's epsilon").above(0);
  cli.option("--clip-norm", &o.clip_norm, "Bound on the gradient's norm; 0: none").at_least(0);
  cli.option("--label-smoothing", &o.label_smoothing, "Share of the target that all classes get alike").at_least(0).below(1);
  cli.section("Machine");
  cli.option("--checkpoint", &o.checkpoint, "Recompute the blocks of stage 1 in the backward pass, for less memory").decides_speed_only();
  for (const std::string& name : nn::cait_preset_names()) {
    const nn::CaitPreset preset = nn::cait_preset(name);
    cli.preset(name, fmt::format("dim {:g}, {:g} heads, {:g} blocks", preset.at("dim").value, preset.at("heads").value, preset.at("depth").value),
               [&cli, preset] { apply(cli, preset); });
  }
  cli.default_preset("cait-paper-xxs24");
  cli.listing("--list-presets", "Print the presets with what tells them apart", list_presets);
  cli.listing("--preset-diff", &o.diff, "Print the constants in which two presets differ, with their sources", preset_difference)
      .one_of("preset", nn::cait_preset_names())
      .pair()
      .value_name("A B");
  cli.config_note(further_constants);
  cli.rule([] {
    lab::usage_check(o.dim % o.heads == 0, "--dim {} is not a multiple of --heads {}", o.dim, o.heads);
    lab::usage_check(32 % o.patch == 0, "--patch {} does not divide the image side 32", o.patch);
  });
  cli.example("--preset cait-paper-xxs24 --print-config");
  cli.example("--preset-diff cait-paper-xxs36 cait-timm-xxs36");
  cli.example("--preset cait-timm-s24 --dim 48 --heads 2 --depth 12 --lr 1e-3 --seeds 0..2");
}

nn::CaiTOptions model_options(const lab::ImageSet& images, std::uint64_t seed) {
  nn::CaitPreset resolved = o.preset;
  for (const auto& [name, field] : o.fields())
    resolved.at(name).value = std::visit([](const auto* variable) { return static_cast<double>(*variable); }, field);
  nn::CaiTOptions model = nn::options_of(resolved, {.image = images.height, .channels = images.channels, .classes = images.classes, .seed = seed});
  model.gate = o.gate;
  model.drop_key = {.rate = o.drop_key, .schedule = nn::schedule_named(o.drop_key_schedule)};
  if (o.talking_heads == "none") model.attention = nn::make_attention<nn::Attention>;
  if (o.talking_heads == "identity")
    model.attention = [](const nn::AttentionOptions& a) { return std::make_unique<nn::TalkingHeadsAttention>(a, nn::HeadMixInit::identity); };
  return model;
}

// From lr_start up to lr in the warm-up, then a cosine to lr_end.
nn::LearningRate schedule(std::int64_t warmup, std::int64_t steps) {
  const double peak = o.lr, start = std::min(o.lr_start, peak), end = std::min(o.lr_end, peak);
  return nn::LearningRate([=, shape = nn::cosine(1, steps - warmup)](std::int64_t s) {
    if (s < warmup) return start + (peak - start) * static_cast<double>(s) / static_cast<double>(warmup);
    return end + (peak - end) * shape.at(s - warmup);
  });
}

void train(lab::Run& run) {
  nn::CaiT model(model_options(run.data().train, run.seed()));
  nn::audit_init(model, run.seed());
  model.checkpoint_blocks(o.checkpoint);
  nn::AdamW optimizer(
      model.parameters(),
      {.lr = schedule(run.options().warmup, run.steps()), .eps = o.adam_eps, .weight_decay = o.weight_decay, .clip_norm = o.clip_norm});
  for (const lab::Batch& batch : run.batches()) {
    if (optimizer.steps_taken() == 0) nn::calibrate(model, batch.images);
    const double lr = optimizer.learning_rate();
    const Gradients g = backward(cross_entropy(model(batch.images), batch.labels, o.label_smoothing));
    run.log({{"loss", g.loss()}, {"grad_norm", g.norm()}, {"lr", lr}});
    if (!std::isfinite(g.loss()) || !std::isfinite(g.norm())) {
      run.log({{"diverged_at", static_cast<double>(optimizer.steps_taken())}});
      return;
    }
    optimizer.step(g);
  }
  const lab::Evaluation evaluation = lab::evaluate(model, run.data().validation, run.normalization());
  run.log({{"val_loss", evaluation.loss}, {"val_accuracy", evaluation.accuracy}});
}

}  // namespace

int main(int argc, char** argv) {
  return lab::experiment(argc, argv,
                         {.name = "cait",
                          .summary = "Trains a CaiT, as published or at another size, and says where each of its constants comes from.",
                          .declare = declare,
                          .derive = derive},
                         train);
}
