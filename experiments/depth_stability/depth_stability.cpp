// Which residual methods train at which depth? The study trains methods at several depths, learning rates and seeds on
// one data set.
#include "experiments/programs.h"

#include <algorithm>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/report/text.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/stats/verdict.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/conformance/gate_check.h"
#include "nn/gates/method.h"

namespace plumb::vision {
namespace {

std::string list_gates() {
  std::string text;
  std::size_t names = 0, formulas = 0;
  for (const std::string& name : nn::method_names()) {
    names = std::max(names, name.size());
    formulas = std::max(formulas, nn::method_named(name).formula.size());
  }
  for (const std::string& name : nn::method_names()) {
    const nn::Method method = nn::method_named(name);
    text += fmt::format("{:<{}}  {:<{}}  {}\n", name, names, method.formula, formulas, method.source);
    for (const nn::MethodConstant& c : method.constants)
      text += fmt::format("{:<{}}  {}:{}{}\n", "", names, name, c.text(c.standard),
                          c.meaning.empty() ? "" : "  " + c.meaning);
  }
  return text;
}

// Prints the report of the conformance check on every method. Returns 1 if a method failed the check, otherwise 0.
int check_gates(const std::vector<std::string>& gates) {
  int failed = 0;
  for (const std::string& gate : gates) {
    const nn::GateReport report = nn::check_gate(gate);
    write_result(report.text());
    failed += !report.passed();
  }
  write_result(
      fmt::format("{} of {} methods conform\n", gates.size() - static_cast<std::size_t>(failed), gates.size()));
  return failed > 0 ? 1 : 0;
}

// Adds the conclusions of CaiT's table 1 as claims, and published figures with their sources.
void claim_cait_table1(Study& study) {
  const char* cait = "Touvron et al. 2021, CaiT, table 1";
  for (const int d : {12, 18, 24, 36}) {
    const auto lower_at = [&](const char* a, const char* b) {
      return lower("train_loss", {{"gate", a}}, {{"gate", b}}).at({{"depth", d}});
    };
    study.claim(fmt::format("depth {}: a scalar gate that starts at eps trains better than one that starts at 0", d),
                cait, lower_at("scalar_gate", "rezero_ln"));
    if (d >= 24)
      study.claim(fmt::format("depth {}: LayerScale trains better than pre", d), cait, lower_at("layerscale", "pre"))
          .primary();
    for (const char* other : {"rezero_ln", "scalar_gate", "t_fixup_ln", "fixup_ln"})
      if (d >= 24)
        study.claim(fmt::format("depth {}: LayerScale trains better than {}", d, other), cait,
                    lower_at("layerscale", other));
    for (const char* other : {"t_fixup_ln", "fixup_ln"})
      if (d <= 18)
        study.claim(fmt::format("depth {}: {} is as good as LayerScale, within a loss of 0.05", d, other), cait,
                    not_higher("train_loss", {{"gate", other}}, {{"gate", "layerscale"}}, 0.05).at({{"depth", d}}));
    for (const auto& [plain, with_norm] :
         {std::pair("rezero", "rezero_ln"), {"t_fixup", "t_fixup_ln"}, {"fixup", "fixup_ln"}})
      study.claim(fmt::format("depth {}: {} trains better with norm, warm-up and DeiT's weights", d, plain),
                  "the same: norm and warm-up were put back", lower_at(with_norm, plain));
  }
  const char* second = "as a secondary text reports table 1";
  study.published({{"gate", "pre"}, {"depth", 12}}, "val_accuracy", "79.9 % top-1 on ImageNet", second);
  for (const int d : {24, 36})
    study.published({{"gate", "pre"}, {"depth", d}}, "val_accuracy", "fails at a drop-path rate of 0.05", second);
  study.published({{"gate", "layerscale"}, {"depth", 12}}, "val_accuracy", "80.5 % top-1 on ImageNet",
                  "an author, facebookresearch/deit, issue 122");
  study.published({{"gate", "pre"}, {"depth", 24}}, "val_accuracy",
                  "81.0 % top-1 on ImageNet, at the best drop-path rate of 0.2",
                  "an author, facebookresearch/deit, issue 218");
  study.published({{"gate", "pre"}, {"depth", 24}}, "val_accuracy", "NaN, or 79.7 % top-1 on ImageNet",
                  "a user, facebookresearch/deit, issue 218");
  study.published(
      {{"gate", "layerscale"}, {"depth", 24}}, "val_accuracy",
      "perplexity 27.93 and 23.45, pre-norm 26.73 and 21.92 (language models of 130M and 250M, of other depths)",
      "Sun et al. 2025, LayerNorm-Scaling, as a secondary text reports it");
}

}  // namespace

}  // namespace plumb::vision

int plumb::lab::depth_stability(int argc, const char* const* argv) {
  using namespace vision;
  vision::Study study("depth_stability", "Trains residual methods at several depths and reports which of them train.");
  const auto gate = study
                        .axis<std::string>("--gates", {"post", "pre", "rezero", "skipinit", "fixup", "layerscale"},
                                           "Residual methods to compare")
                        .one_of_methods("gate");
  // Small depths come first, because their trials end soon.
  const auto depth = study.axis<std::int64_t>("--depths", {6, 24, 48}, "Numbers of blocks (attention and MLP)")
                         .at_least(1)
                         .at_most(largest_size)
                         .slowest();
  const auto lr = study.axis<double>("--lrs", {3e-3}, "Peak learning rates").above(0);
  study.options().steps = 300;
  bool only_check = false;
  study.judging().control = "pre";
  Cli& cli = study.cli();
  cli.section("Verdict");
  cli.option("--control", &study.judging().control, "The method with which the others are compared")
      .one_of_methods("gate")
      .scope(Scope::speed);
  cli.rule([&study, &cli, gate] {
    const std::string& control = study.judging().control;
    const std::vector<std::string>& gates = gate.values();
    usage_check(!cli.typed("--control") || std::ranges::find(gates, control) != gates.end(),
                "--control {}: the method is not among --gates {}, so nothing would be compared with it; add it to "
                "--gates, or name one of these methods",
                control, fmt::join(gates, ","));
  });
  cli.section(Cli::instead);
  cli.option("--check-gates", &only_check,
             "Check that the methods of --gates conform (gradients, claims, save and load, ...); train nothing")
      .scope(Scope::call);
  cli.listing("--list-gates", "Print the residual methods with their formulas, papers and constants", list_gates);
  cli.preset("quick", "six methods at depths 6 and 48 on glyphs-clutter, one seed; five minutes on two cores", [&] {
    study.images().data = "glyphs-clutter";
    gate.set({"post", "pre", "rezero", "skipinit", "fixup", "layerscale"});
    depth.set({6, 48});
    study.options().seeds = {1};
  });
  const auto cait_table1 = [&](std::vector<std::int64_t> depths, std::int64_t steps, std::int64_t judged_seeds) {
    gate.set({"pre", "rezero_ln", "t_fixup_ln", "fixup_ln", "scalar_gate", "layerscale", "rezero", "t_fixup", "fixup"});
    depth.set(depths);
    study.images().data = "glyphs-clutter";
    study.options().judge_seeds(judged_seeds), study.options().steps = steps;
    study.network().recipe = vision::RecipeKind::paper;
    lr.set({1e-3});
    claim_cait_table1(study);
  };
  cli.preset("cait-table1-quick",
             "CaiT's table 1, with norm and warm-up restored and as first published, at depths 12 and 36 on "
             "glyphs-clutter, one seed; three minutes",
             [=] {
               cait_table1({12, 36}, 200, 0);
             });
  cli.preset("cait-table1-cpu",
             "CaiT's table 1 at depth 24 on glyphs-clutter, 400 steps, each method at its own rate, 12 judged "
             "seeds; one to two hours on two cores",
             [=] { cait_table1({24}, 400, 12); });
  cli.preset(
      "cait-table1", "CaiT's table 1 with DeiT-S on ImageNet, as published, one seed; needs --image-folder and GPUs",
      [=, &study] {
        cait_table1({12, 18, 24, 36}, 1, 0);
        set_deit_small(study, [gate] { return gate.values(); });
        study.network().recipe = vision::RecipeKind::paper, study.network().drop.drop_path = 0.05,
        study.network().drop.drop_path_schedule = vision::DropPathSchedule::uniform;
        lr.set({study.optimization().lr});
        explain(study, "--lrs", "facebookresearch/deit, main.py: 5e-4 x batch / 512");
        explain(
            study, "--recipe",
            "Touvron et al. 2021, CaiT: DeiT's recipe with norm and warm-up, otherwise that of each method's paper");
        explain(study, "--drop-path", "Touvron et al. 2021, CaiT, table 1, first baseline; ours for the other columns");
        explain(study, "--drop-path-schedule", "Touvron et al. 2021, CaiT: uniform");
        explain(study, "--depths", "Touvron et al. 2021, CaiT, table 1");
        explain(study, "--gates", "Touvron et al. 2021, CaiT, table 1, in both forms of its section 2");
        study.options().warmup.reset();
        explain(study, "--warmup", "follows --recipe");
      });
  cli.example("--preset quick");
  cli.example("--preset cait-table1-cpu --jobs 2 --out runs/cait-table1");
  cli.example("--gates layerscale,rezero --depths 12,24,48 --seeds 0..4 --drop-path 0.1");
  cli.example("--data fashion-mnist --data-dir data --gates all --out runs/fashion");

  study.cli().action([&] { return only_check ? std::optional(check_gates(gate.values())) : std::nullopt; });
  study.check([&](const DataFacts& data) {
    if (study.network().drop.drop_key > 0)
      note_error(fmt::format("DropKey {}\n", study.network().describe_drop_key(vision::image_sizes(data))));
  });
  study.columns({"train_loss", "val_loss", "val_accuracy", "diverged_at", "seconds", "images_per_second"});
  study.show({"train_loss", "val_accuracy"});
  study.title("Depth stability");
  study.output({"layers.csv", layers_csv});
  study.output([](const StudyResults& r) {
    return Display{.report = results_report(r, false),  // without the question, because the verdict answers it
                   .terminal = fmt::format("{}val accuracy: accuracy on {}\n{}",
                                           results_table(trial_results(r), r.judging, r.colour), r.data.validation_is,
                                           findings_text(r, r.colour))};
  });
  return study.run(argc, argv, [&](Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = trial[gate]}));
    trial.train(model, record_layers(trial, model.stack()));
  });
}
