#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/report/report.h"
#include "tests/lab/report/render.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

// Four methods at depths 6 and 48. Method a is the control and trains at both depths. Method b trains only at depth 6.
// At depth 48, method c loses one of its three seeds, and method d loses all three.
std::vector<TrialResult> trials() {
  std::vector<TrialResult> all;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double jitter = 0.01 * static_cast<double>(seed);
    all.push_back(trial("a", 6, seed, 1.0 + jitter));
    all.push_back(trial("b", 6, seed, 0.5 + jitter));
    all.push_back(trial("a", 48, seed, 0.4 - jitter));
    all.push_back(trial("b", 48, seed, 2.3 + jitter));
    all.push_back(seed == 1 ? dead("c", 48, seed, 3) : trial("c", 48, seed, 0.1));
    all.push_back(dead("d", 48, seed, 3));
  }
  return all;
}

std::vector<Condition> judged_trials(const std::string& control = "a") {
  return conditions_of(trials(), {.chance = chance_of_classes(10), .control = control});
}

}  // namespace

TEST_CASE("rankings begin with the deepest condition and put methods with lost seeds last") {
  const std::vector<DotPlot> plots = rankings(judged_trials(), chance_of_classes(10));
  REQUIRE(plots.size() == 2);
  CHECK(plots[0].title == "Depth 48");
  CHECK(plots[0].id == "ranking-depth-48");
  REQUIRE(plots[0].rows.size() == 4);
  const auto row = [&](std::size_t i) { return fmt::format("{}: {}", plots[0].rows[i].name, plots[0].rows[i].note); };
  CHECK(row(0) == "a: control");
  CHECK(row(1) == "c: 1 of 3 diverged");  // c ranks second although its mean is the lowest
  CHECK(row(2) == "b: near chance");
  CHECK(row(3) == "d: 3 of 3 diverged");
  CHECK(plots[0].rows[0].singles == std::vector<double>{0.4, 0.39, 0.38});
  CHECK(plots[0].rows[0].dot.low < 0.39);
  CHECK(plots[0].rows[2].quiet);
  CHECK(std::isnan(plots[0].rows[3].dot.x));
  CHECK(plots[1].rows[0].name == "b");
  CHECK(plots[1].rows[0].note == "no verdict, 3:0");  // three seeds are too few for a verdict
  std::vector<TrialResult> many;
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    for (const auto& [gate, loss] : {std::pair("a", 1.0), {"b", 0.5}, {"e", 1.5}})
      many.push_back(trial(gate, 6, seed,
                           loss + 0.01 * static_cast<double>((seed * 7 + static_cast<std::uint64_t>(gate[0])) % 5)));
  const DotPlot plain =
      rankings(conditions_of(many, {.chance = chance_of_classes(10), .control = "a"}), chance_of_classes(10)).at(0);
  CHECK(plain.rows[0].note == "better, 6:0");
  CHECK(plain.rows[2].note == "worse, 0:6");
  CHECK(rankings(judged_trials("none of these"), chance_of_classes(10))[1].rows[0].note == "");
  CHECK(
      rankings(conditions_of({trial("a", 6, 0, 1)}, {.chance = chance_of_classes(10)}), chance_of_classes(10)).empty());
}

TEST_CASE("the overview has methods by depth, sorted by the deepest, with stronger colours far from chance") {
  const std::optional<HeatMap> map = overview(judged_trials(), chance_of_classes(10));
  REQUIRE(map);
  CHECK(map->rows == std::vector<std::string>{"a", "c", "b", "d"});
  CHECK(map->columns == std::vector<HeatMap::Head>{{"6", ""}, {"48", ""}});
  const auto cell = [&](std::size_t r, std::size_t c) { return map->cells[r * 2 + c]; };
  CHECK(cell(0, 1).text == "0.39");
  CHECK(cell(0, 1).strength > cell(0, 0).strength);
  CHECK(cell(2, 1).strength < 0.01);
  CHECK_THAT(cell(2, 1).title, contains("near chance"));
  CHECK(cell(1, 0).text == "");  // there is no such trial
  CHECK(cell(1, 1).text == "0.10 ✕1");
  CHECK(cell(1, 1).crossed);
  CHECK(cell(3, 1).text == "diverged");
  // All trials have one depth.
  CHECK_FALSE(overview(conditions_of({trial("a", 6, 0, 1), trial("b", 6, 0, 1)}, {.chance = chance_of_classes(10)}),
                       chance_of_classes(10)));
  // All trials have one method.
  CHECK_FALSE(overview(conditions_of({trial("a", 6, 0, 1), trial("a", 48, 0, 1)}, {.chance = chance_of_classes(10)}),
                       chance_of_classes(10)));
}

TEST_CASE("the axis of losses does not begin at zero if all losses are near chance") {
  StudyResults input{.name = "t",
                     .trials = {trial("a", 6, 0, 2.31), trial("b", 6, 0, 2.30)},
                     .judging = {.chance = chance_of_classes(10)}};
  for (std::size_t i = 0; i < input.trials.size(); ++i)
    for (std::int64_t step = 0; step < 4; ++step)
      log_loss(input, i, step, *input.trials[i].value("train_loss") + 0.001 * static_cast<double>(step));
  const Plot plot = loss_plots(input)[0];
  CHECK(*plot.y.low > 2.29);
  CHECK(*plot.y.high < 2.33);
}

TEST_CASE("gate factors over training are geometric means and need three logged steps") {
  StudyResults input{
      .name = "t", .trials = {trial("a", 6, 0, 1), trial("b", 6, 0, 1)}, .judging = {.chance = chance_of_classes(10)}};
  for (std::int64_t step : {0, 10, 20}) {
    log_layers(input, 0, step,
               {{.block = 0, .branch = "attn", .gate_max = 0.01}, {.block = 1, .branch = "attn", .gate_max = 1.0}});
    log_layers(input, 1, step, {{.block = 0, .branch = "attn"}, {.block = 1, .branch = "attn"}});
  }
  const std::vector<Plot> plots = gate_step_plots(input);
  REQUIRE(plots.size() == 1);
  REQUIRE(plots[0].series.size() == 1);
  REQUIRE(plots[0].series[0].points.size() == 3);
  CHECK(plots[0].series[0].points[2].x == 20);
  CHECK(plots[0].series[0].points[2].y == Approx(0.1));
  for (Attached& attached : input.attached) attached.layers.erase(attached.layers.begin() + 1);
  CHECK(gate_step_plots(input).empty());
}

TEST_CASE("each figure of a report has its own name, a standalone picture and a table of its data") {
  StudyResults input{.name = "t", .trials = trials(), .judging = {.chance = chance_of_classes(10), .control = "a"}};
  const Report report = render(input);
  std::vector<std::string> ids;
  for (const Figure& f : report.figures) {
    CHECK(f.id == slug(f.id));
    CHECK(std::ranges::find(ids, f.id) == ids.end());
    ids.push_back(f.id);
    CHECK(f.svg.starts_with("<svg "));
    CHECK_THAT(f.svg, contains("xmlns=\"http://www.w3.org/2000/svg\""));
    CHECK_THAT(report.html, contains(f.svg));
    CHECK(standalone(f.svg).starts_with("<svg style=\"background:#fff;"));
    CHECK(standalone(f.svg).ends_with(f.svg.substr(5) + "\n"));
  }
  const auto csv = [&](const std::string& id) { return std::ranges::find(report.figures, id, &Figure::id)->csv; };
  CHECK_THAT(csv("overview"), contains("row,depth,lr,value,text\na,6,,1.01,1.01\n"));
  CHECK_THAT(csv("ranking-depth-48"), contains("\nd,mean,,,,3 of 3 diverged\n") && contains("\na,single,0.4,,,\n"));
  CHECK_THAT(csv("val-accuracy"), contains("series,kind,x,y,low,high\n"));
  CHECK(slug("loss depth 24, lr 0.003") == "loss-depth-24-lr-0-003");
}

TEST_CASE("with several learning rates a column has two heads and only the largest depth is ranked") {
  std::vector<TrialResult> all;
  for (const double rate : {1e-3, 3e-3})
    for (const std::int64_t depth : {6, 48})
      for (const auto& [gate, loss] : {std::pair("a", 1.0), {"b", 2.0}}) {
        all.push_back(trial(gate, depth, 0, gate[0] == 'b' && rate > 2e-3 && depth == 48 ? 0.01 : loss));
        all.back().point.set("lr", rate);
      }
  const std::vector<Condition> judged_conditions = conditions_of(all, {.chance = chance_of_classes(10)});
  const HeatMap map = overview(judged_conditions, chance_of_classes(10)).value();
  CHECK(map.columns == std::vector<HeatMap::Head>{{"6", "0.001"}, {"6", "0.003"}, {"48", "0.001"}, {"48", "0.003"}});
  CHECK(map.rows == std::vector<std::string>{"b", "a"});
  CHECK(map.cells[3].text == "0.01");
  const std::vector<DotPlot> plots = rankings(judged_conditions, chance_of_classes(10));
  REQUIRE(plots.size() == 2);
  CHECK(plots[0].title == "Depth 48, lr 0.003");
  CHECK(plots[1].title == "Depth 48, lr 0.001");
}

TEST_CASE("a heat map never cuts a number and leaves all numbers out if one number does not fit") {
  HeatMap map{.id = "m", .rows = {"a"}};
  for (int i = 0; i < 4; ++i)
    map.columns.push_back({std::to_string(i), ""}), map.cells.push_back({.text = "0.1234", .title = "all of it"});
  CHECK_THAT(render_svg(map), contains(">0.1234<"));
  for (int i = 4; i < 30; ++i)
    map.columns.push_back({std::to_string(i), ""}), map.cells.push_back({.text = "0.1234", .title = "all of it"});
  CHECK_THAT(render_svg(map), !contains(">0.1234<") && !contains("…") && contains("<title>all of it</title>"));
  map.cells.pop_back();
  CHECK_THAT(error_of([&] { render_svg(map); }), contains("expected 1 x 30 cells, got 29"));
}

TEST_CASE("the names of a heat map's rows get the space that its numbers leave") {
  const std::string name = "scalar_gate epsilon 1e-05";
  HeatMap map{.id = "m", .rows = {name}};
  const auto with_columns = [&](int count) {
    map.columns.clear(), map.cells.clear();
    for (int i = 0; i < count; ++i)
      map.columns.push_back({std::to_string(i), ""}), map.cells.push_back({.text = "0.12"});
    return render_svg(map);
  };
  CHECK_THAT(with_columns(2), contains(">" + name + "<") && contains(">0.12<"));
  CHECK_THAT(with_columns(8), contains(">scalar_gate epsilon…<") && contains(">0.12<"));
}

TEST_CASE("a ranking names levels beyond the frame, and means near chance do not compress the others") {
  DotPlot plot{.id = "p",
               .x = {.title = "training loss"},
               .rows = {{.name = "a", .dot = {.x = 0.05}}, {.name = "b", .dot = {.x = 0.1}}}};
  plot.rules = {{2.303, "chance"}};
  CHECK_THAT(render_svg(plot), contains("chance (beyond the frame)"));
  const auto at = [&](int row) {  // x coordinate of the dot in a row
    const std::string svg = render_svg(plot);
    std::size_t i = 0;
    for (int k = 0; k <= row; ++k) i = svg.find("<circle cx=\"", i + 1);
    return std::stod(svg.substr(i + 12));
  };
  const double apart = at(1) - at(0);
  CHECK(apart > 100);
  CHECK_THAT(render_svg(plot), !contains("mean beyond the frame"));
  plot.rows.push_back({.name = "c", .dot = {.x = 3000}, .quiet = true});
  CHECK(at(1) - at(0) == apart);
  CHECK_THAT(render_svg(plot), contains(">mean beyond the frame<"));
  plot.rows.back().dot.x = 0.11;  // near the others
  CHECK(at(2) > at(1));
  plot.rows.pop_back();
  // The intervals of losses of 0.50 and 0.52 can be told apart, and a level near them is drawn.
  plot.rows = {{.name = "a", .dot = {.x = 0.5, .low = 0.495, .high = 0.505}},
               {.name = "b", .dot = {.x = 0.52, .low = 0.515, .high = 0.525}}};
  CHECK_THAT(render_svg(plot), contains("chance (beyond the frame)"));
  CHECK(at(1) - at(0) > 100);
  plot.rules = {{0.53, "near"}, {0.1, "below"}};
  CHECK_THAT(render_svg(plot), contains(">near<") && contains("below (beyond the frame)"));
  CHECK(at(1) - at(0) > 100);
  for (DotRow& row : plot.rows) row.quiet = true;
  CHECK(at(1) - at(0) > 100);
  plot.rows = {{.name = "a", .dot = {.x = -3}}, {.name = "b", .dot = {.x = -1}}};
  CHECK(at(1) - at(0) > 50);
}

TEST_CASE("a study without training losses has no verdicts") {
  const TrialResult accurate = trial_of("a", 6, 0, {{"val_accuracy", 0.5}});
  CHECK_FALSE(has_training_losses({accurate, dead("a", 6, 1, 3)}));
  CHECK(has_training_losses({dead("a", 6, 1, 3)}));
  CHECK(has_training_losses({accurate, trial("a", 6, 1, 1.0)}));
  const std::string html =
      render({.name = "t", .trials = {accurate, dead("a", 6, 1, 3)}, .judging = {.chance = chance_of_classes(10)}})
          .html;
  CHECK(html.find("no method trained") == std::string::npos);
}
