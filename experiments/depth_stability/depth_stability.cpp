#include "experiments/depth_stability/depth_stability.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "experiments/common/build_info.h"
#include "experiments/common/cli.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/drop_options.h"
#include "experiments/common/dry_run.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/optimization.h"
#include "experiments/common/progress.h"
#include "experiments/common/run_options.h"
#include "experiments/common/session.h"
#include "experiments/common/trainer.h"
#include "experiments/depth_stability/study.h"
#include "nn/audit.h"
#include "nn/gate_check.h"
#include "nn/models/vit.h"

namespace plumb::lab {
namespace {

struct Options : RunOptions {
  std::vector<std::string> gates{"post", "pre", "rezero", "skipinit", "fixup", "layerscale"};
  std::vector<std::int64_t> depths{6, 24, 48};
  std::vector<double> lrs{1e-3};
  std::int64_t dim = 64, heads = 2, patch = 8;
  TrainSettings train;  // what the options below set; an arm's rate and seed, and what RunOptions holds, are filled in for each run
  DropOptions drop;
  std::string init = "shared";
  bool check_gates = false;
};

// A class token and the patches of a 32x32 image.
std::string describe_drop_key(const Options& o) {
  const std::int64_t side = 32 / o.patch;
  return o.drop.describe_key(side * side + 1, {side, side});
}

std::string list_gates() {
  std::string text;
  std::size_t names = 0, formulas = 0;
  for (const std::string& name : nn::gate_names()) {
    names = std::max(names, name.size());
    formulas = std::max(formulas, nn::method_named(name).formula.size());
  }
  for (const std::string& name : nn::gate_names())
    text += fmt::format("{:<{}}  {:<{}}  {}\n", name, names, nn::method_named(name).formula, formulas, nn::method_named(name).source);
  return text;
}

void declare(Cli& cli, Options& o) {
  cli.section("Axes");
  cli.option("--gates", &o.gates, "Residual gates to compare").one_of("gate", nn::gate_names());
  cli.option("--depths", &o.depths, "Numbers of blocks (attention and MLP)").at_least(1).at_most(largest_size);
  cli.option("--lrs", &o.lrs, "Peak learning rates").above(0);
  cli.section("Model");
  cli.option("--dim", &o.dim, "Width").at_least(1).at_most(largest_size);
  cli.option("--heads", &o.heads, "Attention heads").at_least(1).at_most(largest_size);
  cli.option("--patch", &o.patch, "Side of a patch in pixels; images are 32x32").at_least(1);
  cli.option("--init", &o.init, "Base of the initial weights: the same for all gates, or each paper's own").one_of("init", {"shared", "paper"});
  cli.section("Training");
  cli.option("--optimizer", &o.train.optimizer, "Optimizer; sgd has Nesterov's momentum 0.9").one_of("optimizer", optimizer_names());
  cli.option("--schedule", &o.train.schedule, "Course of the learning rate after the warm-up").one_of("schedule", schedule_names());
  cli.option("--weight-decay", &o.train.weight_decay, "Weight decay, of weights only").at_least(0);
  cli.option("--clip-norm", &o.train.clip_norm, "Largest norm of all gradients together; 0: any").at_least(0);
  cli.option("--ema-decay", &o.train.ema_decay, "Decay, after a warm-up, of a moving average of the weights, which is then evaluated; 0: none")
      .at_least(0)
      .below(1);
  o.drop.declare(cli);
  add_run_options(cli, o, {.data = data_set_names(), .devices = {"cpu", "reference"}});
  cli.section(Cli::instead);
  cli.option("--check-gates", &o.check_gates, "Check what --gates must fulfil (gradients, claims, save and load, ...) and train nothing")
      .decides_nothing_later();
  cli.listing("--list-gates", "Print the residual gates, their formulas and papers", list_gates);
  cli.rule([&o] {
    usage_check(o.dim % o.heads == 0, "--dim {} is not a multiple of --heads {}", o.dim, o.heads);
    usage_check(32 % o.patch == 0, "--patch {} does not divide the image side 32", o.patch);
    describe_drop_key(o);  // throws for a shape that does not fit the grid
  });
  cli.preset("quick", "six gates at depths 6 and 48, one seed: minutes on two cores", [&o] {
    o.gates = {"post", "pre", "rezero", "skipinit", "fixup", "layerscale"};
    o.depths = {6, 48};
    o.seeds = {0};
  });
  cli.example("--preset quick");
  cli.example("--gates layerscale,rezero --depths 12,24,48 --seeds 0..4 --drop-path 0.1");
  cli.example("--data fashion-mnist --data-dir data --gates all --out runs/fashion");
}

// Shallow ones first: they are done soon.
std::vector<Arm> arms_of(const Options& o) {
  std::vector<Arm> arms;
  for (std::int64_t depth : o.depths)
    for (const std::string& gate : o.gates)
      for (double lr : o.lrs)
        for (std::int64_t seed : o.seeds) arms.push_back({gate, depth, lr, static_cast<std::uint64_t>(seed)});
  return arms;
}

nn::ViTOptions model_options(const Options& o, const Arm& arm, const ImageSet& images) {
  return {.image = images.height,
          .channels = images.channels,
          .patch = o.patch,
          .classes = images.classes,
          .dim = o.dim,
          .depth = arm.depth,
          .heads = o.heads,
          .gate = arm.gate,
          .drop_key = o.drop.key(),
          .attention_dropout = o.drop.attn_drop,
          .drop_head = o.drop.head(o.steps),
          .drop_path = o.drop.path(),
          .paper_init = o.init == "paper",
          .seed = arm.seed};
}

bool every(std::int64_t interval, std::int64_t step, std::int64_t steps) { return step % interval == 0 || step + 1 == steps; }

// Trains one arm into the study. Returns false if it was interrupted.
bool run_arm(const Options& o, const Arm& arm, const ImageData& data, const Normalization& normalization, Study& study, Progress& progress) {
  ArmResult result{.gate = arm.gate, .depth = arm.depth, .lr = arm.lr, .seed = arm.seed};
  std::vector<LossPoint> losses;
  std::vector<LayerPoint> layers;
  // About 200 points of a loss curve and 10 of each junction, whatever the length of the run.
  const std::int64_t loss_interval = std::max<std::int64_t>(1, o.steps / 200), layer_interval = std::max<std::int64_t>(1, o.steps / 10);
  const TrainObserver observer{
      .on_step =
          [&](const StepRecord& r) {
            progress.step(r.step + 1, r.loss, r.lr);
            if (every(loss_interval, r.step, o.steps) || !r.divergence.empty())
              losses.push_back({arm.gate, arm.depth, arm.lr, arm.seed, r.step, r.loss, r.lr, r.grad_norm, r.divergence});
            if (!r.passport) return;
            for (const BranchPassport& b : r.passport->branches)
              layers.push_back({arm.gate, arm.depth, arm.lr, arm.seed, r.step, b.block, b.branch, b.stream_norm, b.branch_norm, b.ratio, b.gate_mean,
                                b.gate_max, b.grad_norm, b.drop_ratio, b.empty_rows, b.change});
          },
      .wants_passport = [&](std::int64_t step) { return every(layer_interval, step, o.steps); },
      .stop = interrupted};
  std::string outcome_text;
  try {
    nn::ViT model(model_options(o, arm, data.train));
    nn::audit_init(model, arm.seed);
    TrainSettings settings = o.train;
    settings.steps = o.steps, settings.warmup = o.warmup, settings.batch = o.batch;
    settings.lr = arm.lr, settings.seed = arm.seed;
    const TrainOutcome outcome = train(model, data, normalization, settings, observer);
    if (outcome.stopped) return false;
    result.status = outcome.diverged_at ? Status::diverged : Status::ok;
    result.steps = outcome.steps;
    result.train_loss = outcome.train_loss;
    result.val_loss = outcome.val_loss;
    result.val_accuracy = outcome.val_accuracy;
    result.diverged_at = outcome.diverged_at;
    result.seconds = outcome.seconds;
    result.images_per_second = outcome.images_per_second;
    outcome_text = outcome.diverged_at ? fmt::format("diverged at step {}: {}", *outcome.diverged_at, outcome.divergence)
                                       : fmt::format("loss {:.3f}  acc {:.1f} %", *outcome.train_loss, 100 * *outcome.val_accuracy);
  } catch (const std::exception& e) {  // one arm's failure is not the sweep's
    result.status = Status::failed;
    outcome_text = fmt::format("failed: {}", e.what());
    std::ranges::replace(outcome_text, '\n', ' ');
    losses.push_back({.gate = arm.gate, .depth = arm.depth, .lr = arm.lr, .seed = arm.seed, .divergence = outcome_text});
  }
  progress.finish(result.status == Status::ok, outcome_text);
  study.add(result, std::move(losses), std::move(layers));
  study.write();
  return true;
}

NamedTexts settings_of(const Options& o, const std::string& data) {
  return {
      {"data", data},
      {"model", fmt::format("ViT, dim {}, {} heads, patch {}, {} tokens", o.dim, o.heads, o.patch, (32 / o.patch) * (32 / o.patch) + 1)},
      {"training",
       fmt::format("{} steps of batch {}, {}, decay {} on weights, peak rate {}, warm-up {}, {}{}", o.steps, o.batch,
                   optimizer_title(o.train.optimizer), o.train.weight_decay, fmt::join(o.lrs, ", "), o.warmup, schedule_title(o.train.schedule),
                   o.train.clip_norm > 0 ? fmt::format(", gradients clipped at norm {}", o.train.clip_norm) : "")},
      {"evaluated weights", o.train.ema_decay > 0 ? fmt::format("their moving average, decay {} after a warm-up", o.train.ema_decay) : "the last"},
      {"initial weights",
       o.init == "paper" ? "each paper's own base" : "truncated normal, std 0.02 (patch embedding: uniform), the same draws for all gates"},
      {"DropKey", describe_drop_key(o)},
      {"attention dropout", o.drop.attn_drop > 0 ? fmt::format("{:g}", o.drop.attn_drop) : "none"},
      {"DropHead", o.drop.drop_head > 0 ? fmt::format("{:g} at the ends of training, 0 at its middle", o.drop.drop_head) : "none"},
      {"drop-path", o.drop.describe_path()},
      {"number format", o.dtype}};
}

std::string results_json(const Study& study, const RunFolder& folder) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto or_null = [](const auto& value) { return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(); };
  for (const ArmResult& r : study.results())
    rows.push_back({{"gate", r.gate},
                    {"depth", r.depth},
                    {"lr", r.lr},
                    {"seed", r.seed},
                    {"status", to_string(r.status)},
                    {"steps", r.steps},
                    {"train_loss", or_null(r.train_loss)},
                    {"val_loss", or_null(r.val_loss)},
                    {"val_accuracy", or_null(r.val_accuracy)},
                    {"diverged_at", or_null(r.diverged_at)},
                    {"seconds", r.seconds},
                    {"images_per_second", r.images_per_second}});
  return nlohmann::ordered_json{{"folder", folder.path().string()}, {"report", (folder / "report.html").string()}, {"results", rows}}.dump(2) + "\n";
}

// Prints the kit's report on every gate; 1 if one failed.
int check_gates(const Options& o) {
  int failed = 0;
  for (const std::string& gate : o.gates) {
    const nn::GateReport report = nn::check_gate(gate);
    write_result(report.text());
    failed += !report.passed();
  }
  write_result(fmt::format("{} gates conform, {} do not\n", o.gates.size() - static_cast<std::size_t>(failed), failed));
  return failed > 0 ? 1 : 0;
}

int run_study(const Cli& cli, const Options& o) {
  if (o.check_gates) return check_gates(o);
  const std::vector<Arm> arms = arms_of(o);
  if (o.dry_run) {
    std::vector<PlannedRun> runs;
    for (const Arm& arm : arms) runs.push_back({arm.label(), arm.gate, arm.depth});
    dry_run(cli, o, runs, [&](const PlannedRun& run, std::int64_t depth, const ImageSet& images) {
      return std::make_unique<nn::ViT>(model_options(o, {run.kind, depth, 0, 0}, images));
    });
    return 0;
  }
  const Session session(cli, o);
  const ImageData& data = session.data;
  const RunFolder& folder = session.folder;
  if (o.drop.drop_key > 0) note_error(fmt::format("DropKey {}\n", describe_drop_key(o)));
  Study study(folder, arms,
              {.title = fmt::format("Depth stability on {}", data.name),
               .settings = settings_of(o, session.data_text()),
               .classes = data.train.classes,
               .notes = {{"version", fmt::format("{} ({}), {}", version(), commit(), build())},
                         {"machine", session.machine.device},
                         {"command", cli.command_line()}}});
  std::vector<ProgressArm> bars;
  for (const Arm& arm : arms) bars.push_back({arm.label(), static_cast<double>(arm.depth) * static_cast<double>(o.steps)});
  const InterruptHandler interrupt;
  {
    Progress progress(std::move(bars), ProgressOutput::standard_error(o.no_progress));
    for (std::size_t i = 0; i < arms.size() && !interrupted(); ++i) {
      if (study.finished(arms[i])) {
        progress.skip(i);
        continue;
      }
      progress.begin(i, o.steps);
      if (!run_arm(o, arms[i], data, session.normalization, study, progress)) break;
    }
  }
  study.write();

  if (o.json)
    write_result(results_json(study, folder));
  else
    write_result(fmt::format("\n{}val acc: on {}\n\nreport: {}\n", results_table(study.results(), data.train.classes, shows_colour(STDOUT_FILENO)),
                             data.validation_is, (folder / "report.html").string()));
  if (const int status = session.finish(study.results().size(), arms.size(), "runs")) return status;
  const auto failed = std::ranges::count(study.results(), Status::failed, &ArmResult::status);
  if (failed > 0) note_error(fmt::format("error: {} of {} runs failed\n", failed, arms.size()));
  return failed > 0 ? 1 : 0;
}

}  // namespace

int depth_stability(int argc, const char* const* argv) {
  return exit_status([&] {
    Options options;
    Cli cli("depth_stability", "Trains residual gates at several depths and reports which of them train.");
    declare(cli, options);
    return cli.parse(argc, argv) == Action::done ? 0 : run_study(cli, options);
  });
}

}  // namespace plumb::lab
