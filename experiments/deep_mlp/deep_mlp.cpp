#include "experiments/deep_mlp/deep_mlp.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/autograd.h"
#include "core/atomic_file.h"
#include "experiments/common/cli.h"
#include "experiments/common/data/open_data.h"
#include "experiments/common/dry_run.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/progress.h"
#include "experiments/common/session.h"
#include "experiments/common/trainer.h"
#include "experiments/common/training_step.h"
#include "experiments/deep_mlp/records.h"
#include "nn/audit.h"
#include "nn/models/deep_mlp.h"

namespace plumb::lab {
namespace {

struct Options : RunOptions {
  Options() {
    seeds = {0, 1, 2};
    steps = 200;
    batch = 100;
  }
  std::vector<std::string> methods = nn::deep_mlp_methods();
  std::vector<std::int64_t> depths{64};
  std::int64_t width = 256;
  double lr = 0.01;
};

void declare(Cli& cli, Options& o) {
  cli.section("Axes");
  cli.option("--methods", &o.methods, "Kinds of hidden layer to compare").one_of("method", nn::deep_mlp_methods());
  cli.option("--depths", &o.depths, "Numbers of hidden layers").at_least(1).at_most(largest_size);
  cli.section("Model");
  cli.option("--width", &o.width, "Width of the hidden layers").at_least(1).at_most(largest_size);
  cli.section("Training");
  cli.option("--lr", &o.lr, "Learning rate of Adagrad").above(0);
  add_run_options(cli, o, {.data = data_set_names(), .devices = {"cpu", "reference"}});
  cli.example("--data fashion-mnist --data-dir DIR");
  cli.example("--data cifar-10 --data-dir DIR --steps 5000 --seeds 0");
}

std::vector<MlpArm> arms_of(const Options& o) {
  std::vector<MlpArm> arms;
  for (std::int64_t depth : o.depths)
    for (const std::string& method : o.methods)
      for (std::int64_t seed : o.seeds) arms.push_back({method, depth, static_cast<std::uint64_t>(seed)});
  return arms;
}

// Pixels in [-1, 1], whatever the set's statistics are.
Normalization half_and_half(const ImageSet& set) {
  const auto channels = static_cast<std::size_t>(set.channels);
  return {.mean = std::vector<float>(channels, 0.5f), .std = std::vector<float>(channels, 0.5f)};
}

// Trains one arm; nothing if it was interrupted.
std::optional<MlpRecord> train_arm(const Options& o, const MlpArm& arm, const ImageSet& images, Progress& progress) {
  const nn::DeepMlp model(
      {.inputs = images.image_bytes(), .width = o.width, .depth = arm.depth, .classes = images.classes, .method = arm.method, .seed = arm.seed});
  nn::audit_init(model, arm.seed);
  // Ten inputs as the notebook draws them: the Jacobian of a batch is the mean over its samples.
  const Tensor noise = random_normal({10, images.image_bytes()}, arm.seed, "jacobian.inputs");
  const auto through_hidden = [&](const Tensor& x) { return model.hidden(x); };
  MlpRecord record{.arm = arm,
                   .diverged = false,
                   .losses = {},
                   .start = mean_squared_singular_value(through_hidden, model.first(noise).detach(), {.seed = arm.seed}),
                   .end = {.value = unknown},
                   .seconds = 0};

  nn::Adagrad optimizer(model.parameters(), {.lr = nn::warmup_constant(o.lr, o.warmup)});
  BatchLoader loader(images, half_and_half(images), {.batch = o.batch, .seed = arm.seed});
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < o.steps && !record.diverged; ++step) {
    if (interrupted()) return std::nullopt;
    const TrainingStep scope(arm.seed, step);
    const Batch batch = to_tensors(loader.next(), images);
    const Gradients gradients = backward(cross_entropy(model(batch.images), batch.labels));
    progress.step(step + 1, gradients.loss(), optimizer.learning_rate());
    record.losses.push_back(gradients.loss());
    record.diverged = !std::isfinite(gradients.loss()) || !std::isfinite(gradients.norm());
    if (!record.diverged) optimizer.step(gradients);
  }
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!record.diverged) record.end = mean_squared_singular_value([&](const Tensor& x) { return model(x); }, noise, {.seed = arm.seed});
  record.diverged |= !std::isfinite(record.end.value);  // the last update did it
  return record;
}

// Finished arms, in memory and in the run folder, in the order of the arms whenever they were trained.
class Records {
 public:
  Records(const RunFolder& folder, std::vector<MlpArm> arms) : folder_(folder), arms_(std::move(arms)) {
    if (std::filesystem::exists(file())) records_ = parse_records(read_file(file()), file().string());
    std::erase_if(records_, [&](const MlpRecord& r) { return std::ranges::find(arms_, r.arm) == arms_.end(); });
  }

  const std::vector<MlpRecord>& all() const { return records_; }
  bool has(const MlpArm& arm) const { return std::ranges::find(records_, arm, &MlpRecord::arm) != records_.end(); }
  void add(MlpRecord record) { records_.push_back(std::move(record)); }
  void write() {
    std::ranges::sort(records_, {}, [&](const MlpRecord& r) { return std::ranges::find(arms_, r.arm); });
    std::string lines;
    for (const MlpRecord& r : records_) lines += format_record(r);
    write_file_atomically(file(), lines);
    write_file_atomically(folder_ / "results.csv", format_mlp_results(records_));
  }

 private:
  std::filesystem::path file() const { return folder_ / "metrics.jsonl"; }
  const RunFolder& folder_;
  std::vector<MlpArm> arms_;
  std::vector<MlpRecord> records_;
};

std::string results_json(const std::vector<MlpRecord>& records, const RunFolder& folder, std::int64_t steps, std::int64_t steps_per_epoch) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const MlpRecord& r : records) {
    nlohmann::ordered_json epochs = nlohmann::ordered_json::object();
    for (std::int64_t epoch : shown_epochs(steps, steps_per_epoch)) epochs[std::to_string(epoch)] = r.epoch_loss(epoch, steps_per_epoch);
    rows.push_back({{"method", r.arm.method},
                    {"depth", r.arm.depth},
                    {"seed", r.arm.seed},
                    {"status", r.diverged ? "diverged" : "ok"},
                    {"steps", r.losses.size()},
                    {"epoch_losses", epochs},
                    {"train_loss", r.last_loss()},
                    {"jacobian_start", r.start.value},
                    {"jacobian_start_error", r.start.standard_error},
                    {"jacobian_end", r.end.value},
                    {"seconds", r.seconds}});
  }
  return nlohmann::ordered_json{{"folder", folder.path().string()}, {"results", rows}}.dump(2) + "\n";
}

int run_study(const Cli& cli, const Options& o) {
  const std::vector<MlpArm> arms = arms_of(o);
  if (o.dry_run) {
    std::vector<PlannedRun> runs;
    for (const MlpArm& arm : arms) runs.push_back({arm.label(), arm.method, arm.depth});
    dry_run(cli, o, runs, [&](const PlannedRun& run, std::int64_t depth, const ImageSet& images) {
      return std::make_unique<nn::DeepMlp>(
          nn::DeepMlpOptions{.inputs = images.image_bytes(), .width = o.width, .depth = depth, .classes = images.classes, .method = run.kind});
    });
    return 0;
  }
  const Session session(cli, o);
  const std::int64_t steps_per_epoch = session.data.train.size() / o.batch;
  Records records(session.folder, arms);
  std::vector<ProgressArm> bars;
  for (const MlpArm& arm : arms) bars.push_back({arm.label(), static_cast<double>(arm.depth) * static_cast<double>(o.steps)});
  const InterruptHandler interrupt;
  {
    Progress progress(std::move(bars), ProgressOutput::standard_error(o.no_progress));
    for (std::size_t i = 0; i < arms.size() && !interrupted(); ++i) {
      if (records.has(arms[i])) {
        progress.skip(i);
        continue;
      }
      progress.begin(i, o.steps);
      std::optional<MlpRecord> record = train_arm(o, arms[i], session.data.train, progress);
      if (!record) break;
      progress.finish(!record->diverged, record->diverged ? fmt::format("diverged at step {}", record->losses.size() - 1)
                                                          : fmt::format("loss {:.4g}", record->last_loss()));
      records.add(std::move(*record));
      records.write();
    }
  }
  records.write();
  if (o.json)
    write_result(results_json(records.all(), session.folder, o.steps, steps_per_epoch));
  else
    write_result(fmt::format("\n{}\nfolder: {}\n", mlp_table(records.all(), o.steps, steps_per_epoch), session.folder.path().string()));
  return session.finish(records.all().size(), arms.size(), "runs");
}

}  // namespace

int deep_mlp(int argc, const char* const* argv) {
  return exit_status([&] {
    Options options;
    Cli cli("deep_mlp", "Trains deep fully connected networks: plain, residual, normalised, ReZero.");
    declare(cli, options);
    return cli.parse(argc, argv) == Action::done ? 0 : run_study(cli, options);
  });
}

}  // namespace plumb::lab
