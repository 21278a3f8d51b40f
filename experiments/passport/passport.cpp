// How do signals and gradients pass through residual networks, at init and during training? The study measures methods
// at several depths and seeds on one data set.
#include "experiments/programs.h"

#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "experiments/lab/data/batch.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/study/study.h"
#include "experiments/passport/records.h"
#include "experiments/passport/report.h"
#include "nn/audit.h"

namespace plumb::lab {
namespace {

struct Options {
  std::int64_t every = 50, probes = 32;
  bool no_jacobian = false;
};

// Measures the passport of the fresh network: one forward and one backward pass over the first training batch.
PassportRecord at_init(nn::ViT& model, const Trial& trial, const Options& o) {
  const RandomScope random({.seed = trial.seed(), .step = 0});
  BatchLoader loader(trial.data().train, trial.normalization(), {.batch = trial.options().batch, .seed = trial.seed()});
  const Batch batch = to_tensors(loader.next(), trial.data().train);
  SignalProbe probe(model.stack());
  const Gradients gradients = backward(cross_entropy(model(batch.images), batch.labels));
  PassportRecord record{
      .trial = {}, .loss = gradients.loss(), .grad_norm = gradients.norm(), .passport = probe.finish(gradients)};
  if (!o.no_jacobian)
    record.jacobian = jacobian(model.stack(), record.passport, {.probes = o.probes, .seed = trial.seed()});
  return record;
}

void run_trial(Trial& trial, const Options& o) {
  nn::ViT model(trial.vit());
  nn::audit_init(model, trial.seed());
  trial.calibrate(model);
  PassportRecord fresh = at_init(model, trial, o);
  const std::vector<std::string> findings = fresh.findings();
  if (!findings.empty()) trial.warn(findings.front());
  if (trial.steps() == 0) {
    trial.attach(to_json(fresh));
    return trial.measure({{"loss", fresh.loss}, {"grad_norm", fresh.grad_norm}});
  }
  trial.train(model, [&](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % o.every != 0 && step + 1 != trial.steps()) return nullptr;
    return [&, step, probe = std::make_shared<SignalProbe>(model.stack())](const Gradients& g) {
      PassportRecord record = fresh;
      if (step > 0) record.step = step, record.loss = g.loss(), record.grad_norm = g.norm(), record.jacobian.reset();
      record.passport = probe->finish(g);  // step 0 has the fresh network and the effect of the first update
      trial.attach(to_json(record));
    };
  });
}

std::string json_rows(const StudyResults& results) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PassportRecord& r : passport_records(results)) {
    const std::int64_t depth = r.passport.depth();
    nlohmann::ordered_json ratios = nlohmann::ordered_json::array(), gradients = nlohmann::ordered_json::array();
    for (std::int64_t block = 0; block < depth; ++block) {
      ratios.push_back(block_figures(r.passport, block).ratio);
      gradients.push_back(block_figures(r.passport, block).grad_norm);
    }
    nlohmann::ordered_json row{{"gate", r.trial.gate},
                               {"depth", r.trial.depth},
                               {"seed", r.trial.seed},
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
  return rows.dump();
}

NamedTexts settings_of(Study& study, const Options& o, const DataFacts& data) {
  const StudyOptions& run = study.options();
  return {
      {"data", fmt::format("{}, {} of {} images", data.name, run.steps == 0 ? "one batch" : "batches", run.batch)},
      {"model", study.network().describe(data.image_sizes())},
      {"recipe", study.network().describe_recipe()},
      {"training", run.steps == 0
                       ? "none"
                       : fmt::format("{}; a passport every {} steps",
                                     study.optimization().describe(run, fmt::format("{}", study.optimization().lr),
                                                                   study.network().describe_warmup(run.warmup)),
                                     o.every)},
      {"Jacobian",
       o.no_jacobian ? "not measured"
                     : fmt::format("at a Gaussian input with the mean square of the network's input, {} random vectors",
                                   o.probes)},
      {"seeds", fmt::format("{}", fmt::join(run.seeds, ", "))},
      {"number format", enum_name(run.dtype)}};
}

}  // namespace

int passport(int argc, const char* const* argv) {
  Study study("passport",
              "Shows how signals and gradients pass through residual networks, at init and during training, and "
              "compares them with each method's prediction.");
  Options o;
  study
      .axis<std::string>("--gates", {"post", "pre", "deepnorm", "rezero", "layerscale", "layernorm_scaling"},
                         "Residual methods to measure")
      .one_of_methods("gate");
  study.axis<std::int64_t>("--depths", {12, 48}, "Numbers of blocks (attention and MLP)")
      .at_least(1)
      .at_most(largest_size)
      .slowest();
  study.options().steps = 0;
  study.optimization().lr = 3e-3;  // the same learning rate as in depth_stability
  study.takes({.least_steps = 0});
  study.judging().off = true;  // passports describe networks at one learning rate, and compare no losses
  Cli& cli = study.cli();
  cli.section("Passport");
  cli.option("--every", &o.every, "Number of steps between two passports during training").at_least(1);
  cli.option("--probes", &o.probes, "Number of random vectors that estimate the Jacobian").at_least(2);
  cli.option("--no-jacobian", &o.no_jacobian, "Do not measure the Jacobian, which takes --probes backward passes");
  cli.example("--gates all --depths 12,48");
  cli.example("--gates pre,rezero,layerscale --depths 24 --steps 400 --every 50 --seeds 0..2");

  study.title("Signal passport");
  study.output({"passport.csv", [](const StudyResults& r) { return format_passports(passport_records(r)); }});
  study.output([&](const StudyResults& r) {
    const std::vector<PassportRecord> records = passport_records(r);
    return Display{
        .report = render_passports(
            {.title = r.name, .settings = settings_of(study, o, r.data), .notes = r.notes, .records = records}),
        .terminal = passport_table(records, r.colour),
        .json_rows = json_rows(r)};
  });
  return study.run(argc, argv, [&](Trial& trial) { run_trial(trial, o); });
}

}  // namespace plumb::lab
