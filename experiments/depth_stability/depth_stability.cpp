#include "experiments/depth_stability/depth_stability.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/common/passport_json.h"
#include "experiments/common/report.h"
#include "experiments/common/study.h"
#include "experiments/common/verdict.h"
#include "nn/audit.h"
#include "nn/gate_check.h"

namespace plumb::lab {
namespace {

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

// Prints the kit's report on every gate; 1 if one failed.
int check_gates(const std::vector<std::string>& gates) {
  int failed = 0;
  for (const std::string& gate : gates) {
    const nn::GateReport report = nn::check_gate(gate);
    write_result(report.text());
    failed += !report.passed();
  }
  write_result(fmt::format("{} gates conform, {} do not\n", gates.size() - static_cast<std::size_t>(failed), failed));
  return failed > 0 ? 1 : 0;
}

// Ten passports of a training, whatever its length: {"step":..,"passport":{..}}.
AroundStep passports(Arm& arm, const nn::Stack& stack) {
  const std::int64_t interval = std::max<std::int64_t>(1, arm.steps() / 10);
  return [&arm, &stack, interval](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % interval != 0 && step + 1 != arm.steps()) return nullptr;
    return [&arm, step, probe = std::make_shared<PassportProbe>(stack)](const Gradients& g) {
      arm.attach(fmt::format(R"({{"step":{},"passport":{}}})", step, to_json(probe->finish(g))));
    };
  };
}

struct StepPassport {
  std::int64_t step;
  Passport passport;
};

std::vector<StepPassport> passports_of(const Record& record) {
  std::vector<StepPassport> found;
  for (const std::string& text : record.attachments) {
    const auto json = nlohmann::json::parse(text);
    found.push_back({json.at("step"), passport_from_json(json.at("passport").dump())});
  }
  return found;
}

std::string layers_csv(const StudyResults& results) {
  std::vector<std::string> header = results.axes;
  const std::vector<std::string> columns{"stream_norm", "branch_norm", "ratio",      "gate_mean", "gate_max",
                                         "grad_norm",   "drop_ratio",  "empty_rows", "change"};
  header.insert(header.end(), {"step", "block", "branch"});
  header.insert(header.end(), columns.begin(), columns.end());
  CsvTable table(header);
  for (const Record& record : results.records)
    for (const auto& [step, passport] : passports_of(record))
      for (const BranchPassport& row : passport.branches) {
        table.cells(record.point).cell(step).cell(row.block).cell(std::string_view(row.branch));
        for (const std::string& column : columns) table.cell(value_of(row, column));
        table.end_row();
      }
  return table.text();
}

ReportInput input_of(const StudyResults& results) {
  ReportInput input = report_input(results);
  input.question.clear();  // the verdict answers it
  for (std::size_t i = 0; i < results.records.size(); ++i) {
    const ArmResult& a = input.arms[i];
    for (const auto& [step, passport] : passports_of(results.records[i]))
      for (const BranchPassport& row : passport.branches)
        input.layers.push_back({a.gate, a.depth, a.lr, a.seed, step, row.block, row.branch, row.ratio, row.gate_max});
  }
  return input;
}

}  // namespace

int depth_stability(int argc, const char* const* argv) {
  Study study("depth_stability", "Trains residual gates at several depths and reports which of them train.");
  const auto gate = study.axis<std::string>("--gates", {"post", "pre", "rezero", "skipinit", "fixup", "layerscale"}, "Residual gates to compare")
                        .one_of("gate", nn::gate_names());
  // Shallow ones first: they are done soon.
  const auto depth =
      study.axis<std::int64_t>("--depths", {6, 24, 48}, "Numbers of blocks (attention and MLP)").at_least(1).at_most(largest_size).slowest();
  study.axis<double>("--lrs", {3e-3}, "Peak learning rates").above(0);
  study.options().steps = 300;
  bool only_check = false;
  study.judging().control = "pre";
  Cli& cli = study.cli();
  cli.section("Verdict");
  cli.option("--control", &study.judging().control, "The gate that others are compared with").one_of("gate", nn::gate_names()).decides_speed_only();
  cli.section(Cli::instead);
  cli.option("--check-gates", &only_check, "Check what --gates must fulfil (gradients, claims, save and load, ...) and train nothing")
      .decides_nothing_later();
  cli.listing("--list-gates", "Print the residual gates, their formulas and papers", list_gates);
  cli.preset("quick", "six gates at depths 6 and 48, one seed: minutes on two cores", [&] {
    gate.set({"post", "pre", "rezero", "skipinit", "fixup", "layerscale"});
    depth.set({6, 48});
    study.options().seeds = {0};
  });
  cli.example("--preset quick");
  cli.example("--gates layerscale,rezero --depths 12,24,48 --seeds 0..4 --drop-path 0.1");
  cli.example("--data fashion-mnist --data-dir data --gates all --out runs/fashion");

  study.instead([&] { return only_check ? std::optional(check_gates(gate.values())) : std::nullopt; });
  study.before([&](const ImageData& data) {
    if (study.network().drop.drop_key > 0) note_error(fmt::format("DropKey {}\n", study.network().describe_drop_key(data.train)));
  });
  study.columns({"train_loss", "val_loss", "val_accuracy", "diverged_at", "seconds", "images_per_second"});
  study.show({"train_loss", "val_accuracy"});
  study.title([](const DataFacts& data) { return fmt::format("Depth stability on {}", data.name); });
  study.file("layers.csv", layers_csv);
  study.report([](const StudyResults& r) { return render_report(input_of(r)); });
  study.table([](const StudyResults& r, bool colour) {
    const std::string chose = who_chose(r.judging);
    return fmt::format("{}{}val acc: on {}\n", results_table(arm_results(r), r.data.images.classes, colour), chose.empty() ? "" : chose + "\n",
                       r.data.validation_is);
  });
  return study.run(argc, argv, [&](Arm& arm) {
    nn::ViT model(arm.vit({.depth = arm[depth], .gate = arm[gate]}));
    nn::audit_init(model, arm.seed());
    arm.train(model, passports(arm, model.stack()));
  });
}

}  // namespace plumb::lab
