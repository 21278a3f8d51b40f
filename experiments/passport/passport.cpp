#include "experiments/passport/passport.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "core/atomic_file.h"
#include "experiments/common/build_info.h"
#include "experiments/common/cli.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/dry_run.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/progress.h"
#include "experiments/common/session.h"
#include "experiments/common/trainer.h"
#include "experiments/passport/records.h"
#include "experiments/passport/report.h"
#include "nn/audit.h"
#include "nn/models/vit.h"

namespace plumb::lab {
namespace {

struct Options : RunOptions {
  std::vector<std::string> gates{"post", "pre", "deepnorm", "rezero", "layerscale", "layernorm_scaling"};
  std::vector<std::int64_t> depths{12, 48};
  std::int64_t dim = 64, heads = 2, patch = 8;
  std::string init = "shared";
  double lr = 1e-3;
  std::int64_t every = 50, probes = 32;
  bool no_jacobian = false;
};

void declare(Cli& cli, Options& o) {
  o.steps = 0;
  cli.section("Axes");
  cli.option("--gates", &o.gates, "Residual gates to look at").one_of("gate", nn::gate_names());
  cli.option("--depths", &o.depths, "Numbers of blocks (attention and MLP)").at_least(1).at_most(largest_size);
  cli.section("Model");
  cli.option("--dim", &o.dim, "Width").at_least(1).at_most(largest_size);
  cli.option("--heads", &o.heads, "Attention heads").at_least(1).at_most(largest_size);
  cli.option("--patch", &o.patch, "Side of a patch in pixels; images are 32x32").at_least(1);
  cli.option("--init", &o.init, "Base of the initial weights: the same for all gates, or each paper's own").one_of("init", {"shared", "paper"});
  cli.section("Training");
  cli.option("--lr", &o.lr, "Peak learning rate").above(0);
  cli.section("Passport");
  cli.option("--every", &o.every, "Steps between passports while it trains").at_least(1);
  cli.option("--probes", &o.probes, "Random vectors that estimate the Jacobian").at_least(2);
  cli.option("--no-jacobian", &o.no_jacobian, "Leave out the Jacobian, which takes --probes backward passes");
  add_run_options(cli, o, {.data = data_set_names(), .devices = {"cpu", "reference"}, .least_steps = 0});
  cli.rule([&o] {
    usage_check(o.dim % o.heads == 0, "--dim {} is not a multiple of --heads {}", o.dim, o.heads);
    usage_check(32 % o.patch == 0, "--patch {} does not divide the image side 32", o.patch);
  });
  cli.example("--gates all --depths 12,48");
  cli.example("--gates pre,rezero,layerscale --depths 24 --steps 400 --every 50 --seeds 0..2");
}

std::vector<PassportArm> arms_of(const Options& o) {
  std::vector<PassportArm> arms;
  for (std::int64_t depth : o.depths)
    for (const std::string& gate : o.gates)
      for (std::int64_t seed : o.seeds) arms.push_back({gate, depth, static_cast<std::uint64_t>(seed)});
  return arms;
}

// One forward and backward pass over the first training batch.
PassportRecord at_init(nn::ViT& model, const PassportArm& arm, const Options& o, const Session& session) {
  const RandomScope random({.seed = arm.seed, .step = 0});
  BatchLoader loader(session.data.train, session.normalization, {.batch = o.batch, .seed = arm.seed});
  const Batch batch = to_tensors(loader.next(), session.data.train);
  nn::calibrate(model, batch.images);
  PassportProbe probe(model.stack());
  const Gradients gradients = backward(cross_entropy(model(batch.images), batch.labels));
  PassportRecord record{.arm = arm, .loss = gradients.loss(), .grad_norm = gradients.norm(), .passport = probe.finish(gradients)};
  if (!o.no_jacobian) record.jacobian = jacobian(model.stack(), record.passport, {.probes = o.probes, .seed = arm.seed});
  return record;
}

nn::ViTOptions model_options(const Options& o, const PassportArm& arm, const ImageSet& images) {
  return {.image = images.height,
          .channels = images.channels,
          .patch = o.patch,
          .classes = images.classes,
          .dim = o.dim,
          .depth = arm.depth,
          .heads = o.heads,
          .gate = arm.gate,
          .paper_init = o.init == "paper",
          .seed = arm.seed};
}

// Nothing if it was interrupted.
std::optional<std::vector<PassportRecord>> run_arm(const Options& o, const PassportArm& arm, const Session& session, Progress& progress) {
  nn::ViT model(model_options(o, arm, session.data.train));
  nn::audit_init(model, arm.seed);
  std::vector<PassportRecord> records{at_init(model, arm, o, session)};
  if (o.steps == 0) return records;
  const TrainObserver observer{
      .on_step =
          [&](const StepRecord& r) {
            progress.step(r.step + 1, r.loss, r.lr);
            if (r.passport && r.step == 0)
              records[0].passport = *r.passport;  // the same, and what the first step does
            else if (r.passport)
              records.push_back({.arm = arm, .step = r.step, .loss = r.loss, .grad_norm = r.grad_norm, .passport = *r.passport});
          },
      .wants_passport = [&](std::int64_t step) { return step % o.every == 0 || step + 1 == o.steps; },
      .stop = interrupted};
  const TrainOutcome outcome = train(model, session.data, session.normalization,
                                     {.steps = o.steps, .warmup = o.warmup, .batch = o.batch, .lr = o.lr, .seed = arm.seed}, observer);
  if (outcome.stopped) return std::nullopt;
  if (outcome.diverged_at) records.back().divergence = fmt::format("diverged at step {}: {}", *outcome.diverged_at, outcome.divergence);
  return records;
}

// Finished networks, in memory and in the run folder, in the order of the arms whenever they were looked at.
class Passports {
 public:
  Passports(const RunFolder& folder, std::vector<PassportArm> arms, PassportReport report)
      : folder_(folder), arms_(std::move(arms)), report_(std::move(report)) {
    if (std::filesystem::exists(file())) report_.records = parse_passports(read_file(file()), file().string());
    std::erase_if(report_.records, [&](const PassportRecord& r) { return std::ranges::find(arms_, r.arm) == arms_.end(); });
  }

  const std::vector<PassportRecord>& all() const { return report_.records; }
  bool has(const PassportArm& arm) const { return std::ranges::find(all(), arm, &PassportRecord::arm) != all().end(); }
  std::size_t finished() const {
    return static_cast<std::size_t>(std::ranges::count_if(arms_, [&](const PassportArm& a) { return has(a); }));
  }
  void add(std::vector<PassportRecord> records) {
    report_.records.insert(report_.records.end(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
  }
  void write() {
    std::ranges::stable_sort(report_.records, {}, [&](const PassportRecord& r) { return std::ranges::find(arms_, r.arm); });
    std::string lines;
    for (const PassportRecord& r : all()) lines += format_record(r);
    write_file_atomically(folder_ / "passport.csv", format_passports(all()));
    write_file_atomically(folder_ / "report.html", render_passports(report_));
    write_file_atomically(file(), lines);  // last: a network is finished when it is here
  }

 private:
  std::filesystem::path file() const { return folder_ / "metrics.jsonl"; }
  const RunFolder& folder_;
  std::vector<PassportArm> arms_;
  PassportReport report_;
};

std::string results_json(const Passports& passports, const RunFolder& folder) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PassportRecord& r : passports.all()) {
    const std::int64_t depth = depth_of(r.passport);
    nlohmann::ordered_json ratios = nlohmann::ordered_json::array(), gradients = nlohmann::ordered_json::array();
    for (std::int64_t block = 0; block < depth; ++block) {
      ratios.push_back(block_figures(r.passport, block).ratio);
      gradients.push_back(block_figures(r.passport, block).grad_norm);
    }
    nlohmann::ordered_json row{{"gate", r.arm.gate},
                               {"depth", r.arm.depth},
                               {"seed", r.arm.seed},
                               {"step", r.step},
                               {"loss", r.loss},
                               {"grad_norm", r.grad_norm},
                               {"input_mean_square", r.passport.input_mean_square},
                               {"mean_square", r.passport.branches.back().mean_square},
                               {"predicted_mean_square", r.passport.branches.back().predicted_mean_square},
                               {"block_ratios", ratios},
                               {"block_grad_norms", gradients},
                               {"warnings", r.findings()}};
    if (r.jacobian) {
      row["jacobian"] = r.jacobian->value;
      row["jacobian_error"] = r.jacobian->standard_error;
    }
    if (!r.divergence.empty()) row["divergence"] = r.divergence;
    rows.push_back(row);
  }
  return nlohmann::ordered_json{{"folder", folder.path().string()}, {"report", (folder / "report.html").string()}, {"results", rows}}.dump(2) + "\n";
}

NamedTexts settings_of(const Options& o, const ImageData& data) {
  return {
      {"data", fmt::format("{}, {} of {} images", data.name, o.steps == 0 ? "one batch" : "batches", o.batch)},
      {"model", fmt::format("ViT, dim {}, {} heads, patch {}, {} tokens", o.dim, o.heads, o.patch, (32 / o.patch) * (32 / o.patch) + 1)},
      {"initial weights",
       o.init == "paper" ? "each paper's own base" : "truncated normal, std 0.02 (patch embedding: uniform), the same draws for all gates"},
      {"training", o.steps == 0 ? "none"
                                : fmt::format("{} steps, AdamW, decay 0.05 on weights, peak rate {}, warm-up {}, cosine to 0; a passport every {}",
                                              o.steps, o.lr, o.warmup, o.every)},
      {"Jacobian", o.no_jacobian ? "not measured" : fmt::format("at a Gaussian input as large as the network's own, {} random vectors", o.probes)},
      {"seeds", fmt::format("{}", fmt::join(o.seeds, ", "))},
      {"number format", o.dtype}};
}

int run_study(const Cli& cli, const Options& o) {
  const std::vector<PassportArm> arms = arms_of(o);
  if (o.dry_run) {
    std::vector<PlannedRun> runs;
    for (const PassportArm& arm : arms) runs.push_back({arm.label(), arm.gate, arm.depth});
    dry_run(cli, o, runs, [&](const PlannedRun& run, std::int64_t depth, const ImageSet& images) {
      return std::make_unique<nn::ViT>(model_options(o, {run.kind, depth, 0}, images));
    });
    return 0;
  }
  const Session session(cli, o);
  Passports passports(session.folder, arms,
                      {.title = fmt::format("Signal passport on {}", session.data.name),
                       .settings = settings_of(o, session.data),
                       .notes = {{"version", fmt::format("{} ({}), {}", version(), commit(), build())},
                                 {"machine", session.machine.device},
                                 {"command", cli.command_line()}}});
  std::vector<ProgressArm> bars;
  for (const PassportArm& arm : arms) bars.push_back({arm.label(), static_cast<double>(arm.depth) * static_cast<double>(o.steps + 1)});
  const InterruptHandler interrupt;
  int failed = 0;
  {
    Progress progress(std::move(bars), ProgressOutput::standard_error(o.no_progress));
    for (std::size_t i = 0; i < arms.size() && !interrupted(); ++i) {
      if (passports.has(arms[i])) {
        progress.skip(i);
        continue;
      }
      progress.begin(i, std::max<std::int64_t>(1, o.steps));
      std::optional<std::vector<PassportRecord>> records;
      try {
        records = run_arm(o, arms[i], session, progress);
      } catch (const std::exception& e) {  // one network's failure is not the sweep's
        std::string text = fmt::format("failed: {}", e.what());
        std::ranges::replace(text, '\n', ' ');
        progress.finish(false, text);
        ++failed;
        continue;
      }
      if (!records) break;
      const std::vector<std::string> findings = records->front().findings();
      const std::string& divergence = records->back().divergence;
      progress.finish(findings.empty() && divergence.empty(), !divergence.empty() ? divergence
                                                              : findings.empty()  ? fmt::format("loss {:.4g}", records->back().loss)
                                                                                  : findings.front());
      passports.add(std::move(*records));
      passports.write();
    }
  }
  passports.write();
  if (o.json)
    write_result(results_json(passports, session.folder));
  else
    write_result(
        fmt::format("\n{}\nreport: {}\n", passport_table(passports.all(), shows_colour(STDOUT_FILENO)), (session.folder / "report.html").string()));
  if (const int status = session.finish(passports.finished(), arms.size(), "networks")) return status;
  if (failed > 0) note_error(fmt::format("error: {} of {} networks failed\n", failed, arms.size()));
  return failed > 0 ? 1 : 0;
}

}  // namespace

int passport(int argc, const char* const* argv) {
  return exit_status([&] {
    Options options;
    Cli cli("passport",
            "Shows how signals and gradients go through residual networks at init and while they train, beside what each method predicts.");
    declare(cli, options);
    return cli.parse(argc, argv) == Action::done ? 0 : run_study(cli, options);
  });
}

}  // namespace plumb::lab
