// The order of a report: the answer, the main figure, then the verdicts.
#include "experiments/lab/plot/draw.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/report/text.h"
#include "tests/lab/report/render.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

const Point pre{{"gate", "pre"}}, a{{"gate", "a"}}, b{{"gate", "b"}};

// Judged results in which the loss is 1 for pre, 0.5 for a and 0.8 or 1.2 for b.
StudyResults results_of(int seeds, const std::vector<Claim>& claims) {
  StudyResults r{.name = "t", .question = "Which is best?", .axes = {"gate", "depth", "seed"}};
  r.judging.control = "pre";
  std::vector<Point> named;
  for (std::int64_t seed = 0; seed < seeds; ++seed)
    for (const std::int64_t depth : {6, 12})
      for (const char* gate : {"pre", "a", "b"}) {
        const double loss = *gate == 'a' ? 0.5 : *gate == 'b' ? 0.8 + 0.4 * static_cast<double>(seed % 2) : 1;
        r.records.push_back(
            {.point = {{"gate", gate}, {"depth", depth}, {"seed", seed}}, .values = {{"train_loss", loss}}});
        named.push_back(r.records.back().point);
      }
  r.attached.resize(r.records.size());
  judge_all(r, claims, named);
  return r;
}

std::vector<Claim> claims_at_6() {
  const auto at_6 = [](Comparison c) { return c.at({{"depth", 6}}); };
  std::vector<Claim> claims{{"b beats pre", "us", at_6(lower("train_loss", b, pre))},
                            {"pre beats a", "us", at_6(lower("train_loss", pre, a))},
                            {"a beats pre by far", "us", at_6(lower("train_loss", a, pre).by_at_least(0.1))}};
  claims[2].primary();
  return claims;
}

// The places of these texts in `text`, in ascending order if they are there in this order.
bool in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    INFO(part);
    at = text.find(part, at);
    CHECK(at != text.npos);
    if (at == text.npos) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a report begins with the first decided claim, then its figure, then the list of claims") {
  const StudyResults r = results_of(12, claims_at_6());
  const std::string answer =
      "a beats pre by far: agree, 12:0, lower by 0.5 (0.5 to 0.5); decided: 2 of 3 claims (1 agree, 1 disagree).";
  CHECK(answer_of(r) == answer);
  CHECK(in_order(
      results_report(r).html,
      {"</h1>\n<p class=\"verdict\">" + answer + "</p>\n<div class=\"plots\">", "Training loss by method and depth",
       "<h2>Verdicts</h2>", "<li>b beats pre (us): <strong>undecided</strong>", "<li>At depth 12, a trained",
       "<li>At depth 6, a trained", "any wrong verdict", "<h2>Results</h2>"}));
  CHECK(
      in_order(results_text(r, false), {answer + "\n\ngate", "b beats pre (us)\n  undecided: ", "any wrong verdict"}));
  const std::string markdown = results_markdown(r);
  CHECK(markdown.starts_with(answer + "\n\nWhich is best?\n\n| gate |"));
  CHECK(in_order(markdown, {"| b beats pre | us | train_loss | **undecided** |", "\n- At depth 12, a trained best",
                            "\n- At depth 6, a trained best", "any wrong verdict"}));
  StudyResults none = results_of(12, {claims_at_6().front()});
  CHECK(answer_of(none) == "Decided: none of 1 claim, after 12 seeds.");
  none.judging.old_trials = true;
  CHECK_THAT(answer_of(none), contains("No claim is judged: the trials are older"));
}

TEST_CASE("without claims the answer is the sentence on the best condition of the largest depth") {
  const StudyResults r = results_of(12, {});
  CHECK(answer_of(r).starts_with("At depth 12, a trained best, to a training loss of 0.500"));
  CHECK_THAT(results_report(r).html, contains("<li>At depth 6, a") && !contains("<li>At depth 12"));
  const auto of_rates = [](double low, double high) {
    return leading(conditions_of({trial("a", 6, 0, 0.1, 1e-3), trial("a", 12, 0, low, 1e-3),
                                  high > 0 ? trial("a", 12, 0, high, 3e-3) : dead("a", 12, 0, 2, 3e-3)}));
  };
  CHECK((of_rates(0.5, 0.4).depth == 12 && of_rates(0.5, 0.4).rate == 3e-3));
  CHECK(of_rates(0.5, 0.6).rate == 1e-3);
  CHECK(of_rates(0.5, 0).rate == 1e-3);
}

TEST_CASE("one judged seed gives no list of claims, but a line that says how to get verdicts") {
  for (const std::vector<Claim>& claims : {claims_at_6(), std::vector<Claim>()}) {
    const StudyResults r = results_of(1, claims);
    CHECK(answer_of(r).starts_with("At depth 12, a trained best"));
    for (const std::string& text : {results_report(r).html, results_text(r, false), results_markdown(r)})
      CHECK_THAT(text, contains("One seed gives no verdicts; --resume --seeds 0..6 or --resume --until-decided trains "
                                "further seeds.") &&
                           !contains("undecided") && !contains("wrong verdict") && !contains("b beats pre"));
  }
}

TEST_CASE("the charts of the first section are the main figure, and the charts of layers are not repeated") {
  StudyResults r = results_of(12, claims_at_6());
  for (std::size_t i = 0; i < r.trials.size(); ++i) log_layers(r, i, 0, {{.block = 0, .branch = "mlp", .ratio = 0.5}});
  r.sections.push_back({.title = "A table", .answer = "It is so."});
  r.sections.back().table.column("column", TextTable::Align::left), r.sections.back().table.row({"cell"});
  CHECK(in_order(results_report(r).html,
                 {"<p class=\"verdict\">It is so.</p>\n<div class=\"plots\">", "by method and depth",
                  "<h2>Verdicts</h2>", "<h2>A table</h2>", "<h2>Branch against stream</h2>"}));
  for (const Plot& plot : ratio_plots(r)) r.sections.front().charts.push_back(figure_of(plot));
  const std::string html = results_report(r).html;
  CHECK(in_order(
      html, {"It is so.</p>\n<section>\n<h2>A table</h2>", "depth 6, MLP branch", "<td>cell</td>", "<h2>Verdicts</h2>",
             "<h2>Methods by training loss</h2>", "by method and depth", "<h2>Results</h2>"}));
  CHECK_THAT(html, !contains("Branch against stream"));
}
