#include "experiments/lab/report/report.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/report/text.h"
#include "experiments/lab/stats/groups.h"
#include "tests/lab/report/render.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

TrialResult evaluated_trial(const std::string& gate, std::int64_t depth, std::uint64_t seed, double loss,
                            double lr = 1e-3) {
  return trial_of(gate, depth, seed, {{"train_loss", loss}, {"val_loss", loss + 0.1}, {"val_accuracy", 0.5}}, lr);
}

const Judging of_ten_classes{.chance = chance_of_classes(10)};

StudyResults input_of(std::vector<TrialResult> trials) {
  StudyResults input{.name = "Depth <stability> & more",
                     .settings = {{"data", "glyphs <8x8>"}},
                     .trials = std::move(trials),
                     .judging = of_ten_classes};
  for (std::size_t i = 0; i < input.trials.size(); ++i) {
    const TrialResult& a = input.trials[i];
    for (std::int64_t step = 0; step < 4; ++step)
      log_loss(input, i, step, a.diverged_at() == step ? std::nan("") : 2.3 - 0.1 * static_cast<double>(step));
    std::vector<BranchStats> branches;
    for (std::int64_t block = 0; block < a.depth(); ++block)
      for (const char* branch : {"attn", "mlp"}) branches.push_back({.block = block, .branch = branch, .ratio = 0.5});
    log_layers(input, i, 3, std::move(branches));
  }
  input.notes = {{"command", "depth_stability --gates \"a&b\""}};
  return input;
}

// The first tag that is not opened and closed in order. Empty for well-formed markup. Void elements and the doctype
// have no closing tag.
std::string first_unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t i = html.find('<'); i != std::string::npos; i = html.find('<', i + 1)) {
    const std::size_t end = html.find('>', i);
    const std::string tag = html.substr(i + 1, end - i - 1), name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '!' || tag.back() == '/' || name == "meta" || name == "input") continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != tag) return tag;
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

}  // namespace

TEST_CASE("the outcome of a group in words") {
  const auto words = [](const std::vector<TrialResult>& trials) { return outcome(group_trials(trials).front()); };
  CHECK(words({evaluated_trial("a", 6, 0, 1)}) == "ok");
  CHECK(words({dead("a", 6, 0, 37)}) == "diverged at step 37");
  CHECK(words({dead("a", 6, 0, 41), evaluated_trial("a", 6, 1, 1), dead("a", 6, 2, 37)}) ==
        "2 of 3 diverged at steps 37 to 41");
  TrialResult failed = evaluated_trial("a", 6, 1, 1);
  failed.status = Status::failed;
  CHECK(words({dead("a", 6, 0, 41), failed}) == "1 of 2 diverged at step 41; 1 of 2 failed");
}

TEST_CASE("a report is one self-contained, well-formed, escaped page") {
  const std::string html = render(input_of({evaluated_trial("<pre>", 3, 0, 1), evaluated_trial("<pre>", 3, 1, 1.2),
                                            dead("b&c", 3, 0, 2), evaluated_trial("b&c", 12, 0, 1)}))
                               .html;
  CHECK(first_unbalanced(html) == "");
  for (const char* absent : {"<link", "src=", "@import", "url(http", "<pre>", "b&c", "NaN"}) {
    INFO(absent);
    CHECK(html.find(absent) == std::string::npos);
  }
  for (const char* present : {"<title>Depth &lt;stability&gt; &amp; more</title>", "glyphs &lt;8x8&gt;",
                              "depth_stability --gates &quot;a&amp;b&quot;", "diverged at step 2",
                              "chance, ln 10 = 2.303", "prefers-color-scheme:dark", "width=device-width"}) {
    INFO(present);
    CHECK_THAT(html, contains(present));
  }
  CHECK(count(html, "nan") == count(html, "Provenance"));
  std::set<std::string> ids;
  for (std::size_t i = html.find(" id=\""); i != std::string::npos; i = html.find(" id=\"", i + 1))
    CHECK(ids.insert(html.substr(i, html.find('"', i + 5) - i)).second);
}

TEST_CASE("the table has intervals only for groups with several seeds") {
  const auto table = [](const std::vector<TrialResult>& trials) {
    return html_table(groups_by_depth(trials),
                      {.judging = {.chance = chance_of_classes(10),
                                   .references = chance_references(measures_of_classification(10))}});
  };
  const std::string mixed =
      table({evaluated_trial("a", 6, 0, 1), evaluated_trial("a", 6, 1, 2), evaluated_trial("b", 6, 0, 1)});
  CHECK_THAT(mixed, contains("<td class=\"num\">1.500</td><td class=\"interval\">± 6.353</td>"));
  CHECK_THAT(mixed, contains("<td class=\"num\">1.000</td><td class=\"interval\">n = 1</td>"));
  const std::string single = table({evaluated_trial("a", 6, 0, 1)});
  CHECK(single.find("±") == std::string::npos);
  CHECK(single.find("interval") == std::string::npos);
  CHECK_THAT(table({evaluated_trial("a", 6, 0, 2.3)}), contains("near chance"));
  CHECK(count(table({evaluated_trial("a", 6, 0, 1), evaluated_trial("b", 6, 0, 1), evaluated_trial("a", 12, 0, 1)}),
              "class=\"rule\"") == 1);
  CHECK_THAT(table({evaluated_trial("a", 6, 0, 2.3)}), contains("<td class=\"num\">10.0</td><td>ln 10 = 2.303</td>"));
}

TEST_CASE("small losses are shown with more decimals") {
  CHECK_THAT(html_table(groups_by_depth({evaluated_trial("a", 6, 0, 0.00123)}), {}), contains(">0.0012<"));
}

TEST_CASE("loss curves have a mean with a band over the ok seeds and thin lines for diverged seeds") {
  const std::vector<Plot> plots = loss_plots(input_of({evaluated_trial("a", 6, 0, 1), evaluated_trial("a", 6, 1, 1),
                                                       dead("a", 6, 2, 2), evaluated_trial("b", 12, 0, 1)}));
  REQUIRE(plots.size() == 2);
  const Plot& plot = plots[0];
  CHECK(plot.title == "depth 6");
  REQUIRE(plot.series.size() == 2);
  CHECK_FALSE(plot.series[0].thin);
  CHECK(plot.series[1].thin);
  CHECK(plot.series[0].points.size() == 4);
  CHECK(plot.series[0].points[1].y == Approx(2.2));
  CHECK(plot.series[0].points[1].low == Approx(2.2));
  REQUIRE(plot.marks.size() == 1);
  CHECK(plot.marks[0].x == 2);
  CHECK(plot.marks[0].title == "a, seed 2: diverged at step 2");
  REQUIRE(plots[1].series.size() == 1);
  CHECK(std::isnan(plots[1].series[0].points[0].low));
  CHECK(plots[1].series[0].style != plot.series[0].style);
}

TEST_CASE("an exploding trial does not flatten the loss curves") {
  StudyResults input = input_of({evaluated_trial("a", 6, 0, 1), dead("b", 6, 0, 3)});
  input.records[1].metrics[2].values[0].second = 1e9;
  CHECK(*loss_plots(input)[0].y.high < 2 * std::log(10.0));
  CHECK(*loss_plots(input)[0].x.high == 4);
}

TEST_CASE("loss curves of long trials are means of consecutive steps") {
  StudyResults input{
      .name = "t", .trials = {evaluated_trial("a", 6, 0, 1)}, .judging = {.chance = chance_of_classes(10)}};
  for (std::int64_t step = 0; step < 1000; ++step) log_loss(input, 0, step, step % 2 ? 1.0 : 3.0);
  const std::vector<PlotPoint> points = loss_plots(input)[0].series[0].points;
  REQUIRE(points.size() == 100);
  for (const PlotPoint& p : points) CHECK(p.y == Approx(2));
}

TEST_CASE("plots of the score mark depths at which no seed finished") {
  const Measure accuracy{.name = "val_accuracy", .title = "accuracy", .better = Better::higher, .unit = Unit::fraction};
  const std::vector<Plot> plots = score_plots(input_of({evaluated_trial("a", 12, 0, 1), evaluated_trial("a", 6, 0, 1),
                                                        dead("b", 6, 0, 3), evaluated_trial("b", 12, 0, 1)}),
                                              accuracy);
  REQUIRE(plots.size() == 1);
  CHECK(plots[0].x.ticks == std::vector<double>{6, 12});
  REQUIRE(plots[0].series.size() == 2);
  CHECK(plots[0].series[0].points[0].x == 6);
  CHECK(plots[0].series[0].points[0].y == Approx(50));
  REQUIRE(plots[0].marks.size() == 1);
  CHECK(plots[0].marks[0].title == "b, depth 6: diverged at step 3");
}

TEST_CASE("layer plots take the last logged step and the geometric mean over seeds") {
  StudyResults input{.name = "t",
                     .trials = {evaluated_trial("a", 1, 0, 1), evaluated_trial("a", 1, 1, 1), dead("a", 1, 2, 9),
                                evaluated_trial("b", 1, 0, 1)},
                     .judging = {.chance = chance_of_classes(10)}};
  const auto log = [&](std::size_t trial, std::int64_t step, const char* branch, double ratio,
                       std::optional<double> gate_max) {
    log_layers(input, trial, step, {{.block = 0, .branch = branch, .ratio = ratio, .gate_max = gate_max}});
  };
  log(0, 0, "attn", 100, 5.0);
  log(0, 9, "attn", 0.01, 0.5);
  log(1, 9, "attn", 1, 0.5);
  log(2, 9, "attn", 1e6, 9.0);  // the trial diverged, so its value is not in the mean
  log(3, 9, "mlp", 0.3, std::nullopt);
  const std::vector<Plot> ratios = ratio_plots(input);
  REQUIRE(ratios.size() == 2);
  CHECK(ratios[0].title == "depth 1, attention branch");
  CHECK(ratios[0].series[0].points[0].y == Approx(0.1));
  CHECK(ratios[1].series[0].name == "b");
  CHECK(ratios[1].y.low == ratios[0].y.low);
  const std::vector<Plot> first = ratio_plots(input, LoggedStep::first);
  REQUIRE(first.size() == 2);
  CHECK(first[0].id == "init-ratio-depth-1-attn");
  CHECK(first[0].series[0].points[0].y == Approx(10));  // of step 0 and, in the other seed, of step 9
  const std::vector<Plot> gates = gate_plots(input);
  REQUIRE(gates.size() == 1);
  CHECK(gates[0].series.size() == 1);
  CHECK(gates[0].series[0].points[0].y == Approx(0.5));
}

TEST_CASE("layer charts draw expected values as thin lines and only logarithmic charts share their range") {
  StudyResults input{.name = "t",
                     .trials = {evaluated_trial("a", 1, 0, 1), evaluated_trial("a", 1, 1, 1)},
                     .judging = {.chance = chance_of_classes(10)}};
  for (std::size_t seed = 0; seed < 2; ++seed) log_layers(input, seed, 0, {{.block = 0, .branch = "attn"}});
  const auto line = [](double value) {
    return [value](const std::vector<StepStats>&) { return LayerLine{{0, value}, {1, 4}}; };
  };
  const std::vector<Plot> plots =
      layer_plots(input, {{.id = "log", .x = {}, .y = {.log = true}, .line = line(1), .expected = line(2)},
                          {.id = "linear", .x = {}, .y = {}, .line = line(-1), .expected = line(0)},
                          {.id = "log-of-0", .x = {}, .y = {.log = true}, .line = line(0)}});
  REQUIRE(plots.size() == 3);
  REQUIRE(plots[0].series.size() == 2);
  CHECK((!plots[0].series[0].thin && plots[0].series[0].kind == "mean"));
  CHECK((plots[0].series[1].thin && plots[0].series[1].kind == "expected"));
  CHECK(plots[0].series[1].points[0].y == Approx(2));
  CHECK((plots[0].y.low == 0.5 && plots[0].y.high == Approx(8)));
  CHECK((!plots[1].y.low && !plots[1].y.high));
  CHECK(plots[1].series[0].points[0].y == -1);
  CHECK(plots[1].series[1].points[0].y == 0);
  CHECK(plots[2].y.low == plots[0].y.low);
  CHECK(!std::isfinite(plots[2].series[0].points[0].y));  // the line is interrupted
}

TEST_CASE("sections about layers need layer statistics and an empty study still gives a page") {
  StudyResults input = input_of({evaluated_trial("a", 3, 0, 1)});
  CHECK_THAT(render(input).html, contains("<h2>Branch against stream</h2>"));
  CHECK(render(input).html.find("<h2>Gates</h2>") == std::string::npos);
  for (Attached& attached : input.attached) attached = {};
  CHECK(render(input).html.find("Branch against stream") == std::string::npos);
  const std::string empty = render({.name = "t"}).html;
  CHECK(first_unbalanced(empty) == "");
  CHECK_THAT(empty, contains("No trial has ended yet."));
}

TEST_CASE("reports of five hundred trials and of a study in which all trials diverged are well-formed") {
  std::vector<TrialResult> many, all_dead;
  for (int gate = 0; gate < 25; ++gate)
    for (std::int64_t depth : {2, 3, 4, 5})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        many.push_back(evaluated_trial("gate_" + std::to_string(gate), depth, seed, 1 + 0.01 * gate));
        all_dead.push_back(dead("gate_" + std::to_string(gate), depth, seed, 3));
      }
  const std::string html = render(input_of(many)).html;
  CHECK(first_unbalanced(html) == "");
  CHECK(count(html, "<tr") == 2 + 100);
  const std::string sad = render(input_of(all_dead)).html;
  CHECK(first_unbalanced(sad) == "");
  CHECK(count(sad, "nan") == count(sad, "Provenance"));
  CHECK_THAT(sad, contains("At depth 5 and lr 0.001, no method trained; gate_0, gate_1, gate_2, gate_3, gate_4, gate_5 "
                           "and 19 more: 5 of 5 diverged."));
  CHECK_THAT(sad, contains("5 of 5 diverged at step 3<"));
}

TEST_CASE("the terminal table and the report mark the same methods as near chance") {
  std::vector<TrialResult> trials{evaluated_trial("pre", 6, 0, 1), evaluated_trial("post", 6, 0, 2.3),
                                  evaluated_trial("rezero", 6, 0, 2.29), dead("rezero", 6, 1, 49)};
  StudyResults input{.axes = {"gate", "seed"}, .columns = {"val_loss"}, .trials = trials};
  for (const TrialResult& t : trials)
    input.records.push_back({.point = t.point, .status = t.status, .values = t.values});
  input.attached.resize(input.records.size());
  input.judging.chance = chance_of_classes(10);
  prepare(input.trials, input.judging);
  CHECK_THAT(results_text(input, false),
             contains("gate    val_loss  n  outcome\n"
                      "pre        1.100  1  ok\n"
                      "post       2.400  1  near chance\n"
                      "rezero     2.390  1  1 of 2 near chance; 1 of 2 diverged at step 49\n") &&
                 contains("\nnear chance: mean training loss at or above 95 % of ln 10 = 2.303.\n"));
  CHECK_THAT(results_text(input, true), contains("\x1b[33mnear chance\x1b[0m") && contains("\x1b[32mok\x1b[0m") &&
                                            contains("\x1b[31m1 of 2 near chance"));
  const std::string html = render(input).html;
  CHECK_THAT(html, contains(">near chance<") && contains(">1 of 2 near chance; 1 of 2 diverged at step 49<"));
}

TEST_CASE("the comparisons with the control have a row for each method with two seeds") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const auto& [gate, loss] : {std::pair("pre", 2.0), {"a", 1.5}, {"b", 4.0}})
      if (*gate != 'b' || seed == 0) trials.push_back(trial(gate, 6, seed, loss + static_cast<double>(seed), 0.5));
  Judging how{.control = "pre", .own_rates = true};
  how.rates = {{.cell = {{"gate", "pre"}, {"depth", 6}}}};
  const std::vector<Condition> found = conditions_of(trials, how);
  CHECK(comparisons_table(found).markdown() ==
        fmt::format("| method | depth | lr | seeds | won:lost | difference | 95 % | E | needs | stands at neighbours | "
                    "verdict |\n| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- | --- |\n"
                    "| a | 6 | 0.5 | 10 | 10:0 | -0.5 | -0.5 to -0.5 | {:.3g} | 40 | not trained | no verdict |\n",
                    found[0].against_control[0].difference.evidence));
  how.own_rates = false;
  CHECK_THAT(comparisons_table(conditions_of(trials, how)).markdown(), contains("| at this rate | better |"));
}

TEST_CASE("trials are judged once, and the neighbours of the side that lost are wanted") {
  StudyResults r{.name = "t"};
  std::vector<Point> named;
  for (std::int64_t seed = 0; seed < 10; ++seed)
    for (const char* gate : {"pre", "a", "b"}) {
      const double loss = *gate == 'a' ? 0.5 : 1;
      r.records.push_back({.point = {{"gate", gate}, {"lr", 0.5}, {"seed", seed}}, .values = {{"train_loss", loss}}});
      named.push_back(r.records.back().point);
    }
  r.records[0].status = Status::diverged;  // pre
  for (const char* gate : {"pre", "a", "b"}) r.judging.rates.push_back({.cell = {{"gate", gate}}, .rate = 0.5});
  r.judging.control = "pre", r.judging.own_rates = true;
  const Point pre{{"gate", "pre"}}, a{{"gate", "a"}};
  // The worse side is the first one of the claim, which agrees.
  const std::vector<Claim> claims{{"pre is higher", "", higher("train_loss", pre, a)},
                                  {"of another call", "", lower("train_loss", a, {{"gate", "c"}})}};
  judge_all(r, claims, named);
  REQUIRE((r.claims.size() == 1 && r.wanted.size() == 2));
  CHECK((r.wanted[0].cell == pre && r.wanted[0].half_octaves == -1));
  CHECK((r.wanted[1].cell == pre && r.wanted[1].half_octaves == 1));
  for (const std::int64_t step : {-1, 1})
    for (std::int64_t seed = 0; seed < 10; ++seed) {
      r.neighbours.push_back({.point = {{"gate", "pre"}, {"lr", 0.5}, {"seed", seed}}, .values = {{"train_loss", 2}}});
      r.neighbours.back().point.set(neighbour_steps, step);
    }
  judge_all(r, claims, named);
  CHECK((r.wanted.empty() && r.claims[0].verdict == Verdict::agree));
  // The pair has the verdict of the claim, which is in a family of one, with the lower losses as wins.
  const Difference& pair = r.conditions.at(0).against_control.at(0).difference;
  CHECK((pair.better == Side::first && pair.duel.wins == 10 && pair.needs == Approx(20)));
  CHECK((pair.duel.failed_first == 0 && pair.duel.failed_second == 1 && pair.median.value == -0.5));
}

TEST_CASE("the report of a study without depths has no column of depths") {
  const auto html_at = [](std::int64_t depth) {
    std::vector<TrialResult> trials;
    for (const std::uint64_t seed : {0, 1, 2})
      for (const char* design : {"pre", "b"})
        trials.push_back(
            evaluated_trial(design, depth, seed, (*design == 'b' ? 1.0 : 2.0) + 0.01 * static_cast<double>(seed)));
    StudyResults input = input_of(std::move(trials));
    input.judging.control = "pre";
    return render(input).html;
  };
  CHECK_THAT(html_at(6), contains("<h2>Against pre</h2>") && contains(R"(<th class="num">depth</th>)"));
  CHECK_THAT(html_at(0), contains("<h2>Against pre</h2>") && !contains(R"(<th class="num">depth</th>)"));
}
