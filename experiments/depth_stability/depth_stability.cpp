// Which residual methods train at which depth? The study trains methods at several depths, learning rates and seeds on
// one data set.
#include <algorithm>

#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

std::string list_gates() {
  std::string text;
  const auto formula_size = [](const std::string& name) { return nn::method_named(name).formula.size(); };
  const std::vector<std::string> all = nn::method_names();
  const std::size_t names = std::ranges::max(all, {}, &std::string::size).size(),
                    formulas = formula_size(std::ranges::max(all, {}, formula_size));
  for (const std::string& name : all) {
    const nn::Method method = nn::method_named(name);
    text += fmt::format("{:<{}}  {:<{}}  {}\n", name, names, method.formula, formulas, method.source);
    for (const nn::MethodConstant& c : method.constants)
      text += fmt::format("{:<{}}  {}:{}{}\n", "", names, name, c.text(c.standard),
                          c.meaning.empty() ? "" : "  " + c.meaning);
  }
  return text;
}

struct DepthStability : Study {
  DepthStability()
      : Study("depth_stability", "Trains residual methods at several depths and reports which of them train.") {
    defaults({.steps = 300});
    Cli& cli = this->cli();
    cli.section("Verdict");
    cli.option("--control", &control_name, "The method with which the others are compared")
        .one_of_methods()
        .scope(Scope::speed);
    cli.rule([this, &cli] {
      const std::vector<std::string> gates = gate.values();
      usage_check(!cli.typed("--control") || std::ranges::find(gates, control_name) != gates.end(),
                  "--control {}: the method is not among --gates {}, so nothing would be compared with it; add it to "
                  "--gates, or name one of these methods",
                  control_name, fmt::join(gates, ","));
      control(gate == control_name);
    });
    cli.section(Cli::instead);
    cli.option("--check-gates", &only_check,
               "Check that the methods of --gates conform (gradients, claims, save and load, ...); train nothing")
        .scope(Scope::call);
    cli.listing("--list-gates", "Print the residual methods with their formulas, papers and constants", list_gates);
    const std::string table1 = "--gates pre,rezero_ln,t_fixup_ln,fixup_ln,scalar_gate,layerscale,rezero,t_fixup,fixup";
    const Settings cait_table1 = {{table1}, {"--data glyphs-clutter --recipe paper --lrs 0.001"}};
    const auto claims = [this] { claim_cait_table1(); };
    cli.preset("quick", "six methods at depths 6 and 48 on glyphs-clutter, one seed; five minutes on two cores",
               {{"--data glyphs-clutter --gates post,pre,rezero,skipinit,fixup,layerscale --depths 6,48 --seeds 1"}});
    cli.preset("cait-table1-quick",
               "CaiT's table 1, with norm and warm-up restored and as first published, at depths 12 and 36 on "
               "glyphs-clutter, one seed; three minutes",
               cait_table1 + Settings{{"--depths 12,36 --steps 200"}}, claims);
    cli.preset("cait-table1-cpu",
               "CaiT's table 1 at depth 24 on glyphs-clutter, 400 steps, each method at its own rate, 12 judged "
               "seeds; one to two hours on two cores",
               cait_table1 + Settings{{"--depths 24 --steps 400 --seeds 0..12"}}, claims);
    add_paper_preset(
        *this, "CaiT's table 1 with DeiT-S on ImageNet, as published, one seed; needs --image-folder and GPUs",
        {{"--control", "ours"},
         {"--recipe paper",
          "Touvron et al. 2021, CaiT: DeiT's recipe with norm and warm-up, otherwise that of each method's paper"},
         {"--drop-path 0.05", "Touvron et al. 2021, CaiT, table 1, first baseline; ours for the other columns"},
         {"--drop-path-schedule uniform", "Touvron et al. 2021, CaiT: uniform"},
         {"--depths 12,18,24,36", "Touvron et al. 2021, CaiT, table 1"},
         {table1, "Touvron et al. 2021, CaiT, table 1, in both forms of its section 2"},
         {"--warmup recipe", "follows --recipe"}},
        "", "cait-table1", claims);
    cli.examples({"--preset quick", "--preset cait-table1-cpu --jobs 2 --out runs/cait-table1",
                  "--gates layerscale,rezero --depths 12,24,48 --seeds 0..4 --drop-path 0.1",
                  "--data fashion-mnist --data-dir data --gates all --out runs/fashion"});
    cli.action([this]() -> std::optional<int> {
      if (!only_check) return std::nullopt;
      std::size_t conform = 0;
      for (const std::string& name : gate.values()) {
        const nn::MethodReport report = nn::check_method(name);
        write_result(report.text());
        conform += report.passed();
      }
      write_result(fmt::format("{} of {} methods conform\n", conform, gate.values().size()));
      return conform < gate.values().size() ? 1 : 0;
    });
    check([this](const DataFacts& data) {
      if (network().drop.drop_key > 0)
        note_error(fmt::format("DropKey {}\n", network().describe_drop_key(image_sizes(data))));
    });
    columns({train_loss, val_loss, val_accuracy, "diverged_at", "seconds", "images_per_second"});
    title("Depth stability");
    measure_layers();
  }

  const Axis<std::string> gate = methods({"post", "pre", "rezero", "skipinit", "fixup", "layerscale"});
  const Axis<std::int64_t> depth = depths({6, 24, 48}, "Numbers of blocks (attention and MLP)");
  const Axis<double> lr = learning_rates({3e-3});
  bool only_check = false;
  std::string control_name = "pre";

  // The conclusions of CaiT's table 1 as claims, and published figures with their sources.
  void claim_cait_table1() {
    const char* cait = "Touvron et al. 2021, CaiT, table 1";
    for (const int d : {12, 18, 24, 36}) {
      const auto better = [&](const std::string& text, const std::string& source, const char* a,
                              const std::string& b) -> Claim& {
        return claim(fmt::format("depth {}: {}", d, text), source,
                     lower(train_loss, gate == a, gate == b).at(depth == d));
      };
      better("a scalar gate that starts at eps trains better than one that starts at 0", cait, "scalar_gate",
             "rezero_ln");
      for (const std::string other : {"pre", "rezero_ln", "scalar_gate", "t_fixup_ln", "fixup_ln"})
        if (d >= 24)
          better("LayerScale trains better than " + other, cait, "layerscale", other).is_primary = other == "pre";
      for (const char* other : {"t_fixup_ln", "fixup_ln"})
        if (d <= 18)
          claim(fmt::format("depth {}: {} is as good as LayerScale, within a loss of 0.05", d, other), cait,
                not_higher(train_loss, gate == other, gate == "layerscale", 0.05).at(depth == d));
      for (const auto& [plain, with_norm] :
           {std::pair("rezero", "rezero_ln"), {"t_fixup", "t_fixup_ln"}, {"fixup", "fixup_ln"}})
        better(fmt::format("{} trains better with norm, warm-up and DeiT's weights", plain),
               "the same: norm and warm-up were put back", with_norm, plain);
    }
    const auto add = [this](const char* method, int d, const char* figure, const char* source) {
      published(gate == method && depth == d, val_accuracy, figure, source);
    };
    const char *second = "as a secondary text reports table 1", *author = "an author, facebookresearch/deit, issue 218";
    add("pre", 12, "79.9 % top-1 on ImageNet", second);
    for (const int d : {24, 36}) add("pre", d, "fails at a drop-path rate of 0.05", second);
    add("layerscale", 12, "80.5 % top-1 on ImageNet", "an author, facebookresearch/deit, issue 122");
    add("pre", 24, "81.0 % top-1 on ImageNet, at the best drop-path rate of 0.2", author);
    add("pre", 24, "NaN, or 79.7 % top-1 on ImageNet", "a user, facebookresearch/deit, issue 218");
    add("layerscale", 24,
        "perplexity 27.93 and 23.45, pre-norm 26.73 and 21.92 (language models of 130M and 250M, of other depths)",
        "Sun et al. 2025, LayerNorm-Scaling, as a secondary text reports it");
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::depth_stability(int argc, const char* const* argv) { return run<vision::DepthStability>(argc, argv); }
