// Tests of the appearance of reports in a browser, at the widths of a phone and of a desktop, in light and dark mode.
#include <algorithm>
#include <cmath>

#include "experiments/lab/report/report.h"
#include "tests/lab/report/render.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/browser.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

// The results of a study at depths 6, 24 and 48 after 300 training steps. Some methods learn, some stay at chance, and
// some diverge.
StudyResults study_of(int methods, int seeds) {
  StudyResults input{.name = "Depth stability on glyphs", .settings = {{"data", "glyphs"}, {"training", "300 steps"}}};
  const std::vector<Measure> measures = measures_of_classification(10);
  input.judging = {.chance = chance_of_classes(10),
                   .control = "method_0",
                   .references = chance_references(measures),
                   .measures = measures};
  for (int m = 0; m < methods; ++m)
    for (const std::int64_t depth : {6, 24, 48})
      for (int seed = 0; seed < seeds; ++seed) {
        const double worth = 0.2 + 2.1 * ((m * 7 + static_cast<int>(depth)) % methods) / methods + 0.03 * seed;
        const bool lost = m % 9 == 4 && depth == 48 && (seed % 2 == 0 || m == 4);
        const std::string method = "method_" + std::to_string(m);
        const auto number = static_cast<std::uint64_t>(seed);
        TrialResult a =
            trial_of(method, depth, number,
                     {{"train_loss", worth}, {"val_loss", worth + 0.05}, {"val_accuracy", std::exp(-worth)}}, 3e-3);
        a.steps = 300;
        if (lost) a = dead(method, depth, number, 40 + 10 * seed, 3e-3);
        for (std::int64_t step = 0; step < a.steps; ++step)
          log_loss(input, input.trials.size(), step,
                   lost && step + 1 == a.steps ? unknown
                                               : worth + (2.3 - worth) * std::exp(-static_cast<double>(step) / 60.0));
        for (std::int64_t step = 0; step < 300; step += 30) {
          std::vector<BranchStats> branches;
          for (std::int64_t block = 0; block < depth; ++block)
            for (const char* branch : {"attn", "mlp"})
              branches.push_back(
                  {.block = block,
                   .branch = branch,
                   .ratio = 0.1 + 0.01 * static_cast<double>(block),
                   .gate_max = m % 2 ? std::optional(1e-4 * static_cast<double>(step + 1)) : std::nullopt});
          log_layers(input, input.trials.size(), step, std::move(branches));
        }
        input.trials.push_back(std::move(a));
      }
  input.notes = {{"command", "depth_stability --gates all"}};
  return input;
}

// A script that returns the texts outside their charts, the width by which the page is too wide, and the background
// colour of the page.
constexpr const char* overflow = R"js(
  const root = document.documentElement, out = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 3 || box.right > frame.right + 3 || box.bottom > frame.bottom + 3 || box.top < frame.top - 3) out.push(text.textContent);
    }
  }
  return {sideways: root.scrollWidth - root.clientWidth, out: out, paper: window.getComputedStyle(document.body).backgroundColor,
          charts: document.querySelectorAll('svg').length, tall: root.scrollHeight};
)js";

}  // namespace

TEST_CASE(
    "a report of 31 methods and 3 depths and 5 seeds is under 2 MB and fits phone and desktop in light and dark mode") {
  const std::string html = render(study_of(31, 5)).html;
  CHECK(html.size() < 2'000'000);
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  for (const int width : {390, 1440})
    for (const bool dark : {false, true}) {
      const Look look = look_at(html, width, dark, overflow);
      INFO(width << (dark ? " dark " : " light ") << look.found.dump());
      CHECK(look.console == "");
      CHECK(look.found["sideways"] == 0);
      CHECK(look.found["out"].empty());
      CHECK(look.found["charts"] == 4 + 3 + 1 + 6 + 6 + 3);
      CHECK(look.found["paper"] == (dark ? "rgb(20, 23, 26)" : "rgb(255, 255, 255)"));
    }
}

TEST_CASE("the filter of a report hides methods and tables sort by a click and all is visible without a script") {
  const std::string html = render(study_of(31, 3)).html;
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  const Look look = look_at(html, 1440, false, R"js(
    const shown = () => [...document.querySelector('table.results').tBodies[0].rows].filter(r => r.offsetParent !== null).map(r => r.cells[0].textContent);
    const faint = () => document.querySelectorAll('svg .off').length;
    const box = document.querySelector('#filter input'), before = shown(), faint_before = faint();
    box.value = 'method_3, od_7';
    box.dispatchEvent(new window.Event('input', {bubbles: true}));
    const filtered = [...new Set(shown())], faint_then = faint();
    box.value = '';
    box.dispatchEvent(new window.Event('input', {bubbles: true}));
    const after = shown().length;
    const heads = [...document.querySelector('table.results').tHead.rows[0].cells], loss = heads.find(h => h.textContent === 'train loss');
    const column = () => [...document.querySelector('table.results').tBodies[0].rows].map(r => r.cells[4].textContent);
    loss.click();
    const up = column();
    loss.click();
    return {hidden: document.getElementById('filter').hidden, before: before.length, filtered: filtered, faint: [faint_before, faint_then], after: after,
            up: up, down: column(), first: shown()[0],
            last: [...document.querySelector('table.results').tBodies[0].rows].pop().cells[4].textContent};
  )js");
  INFO(look.found.dump());
  CHECK(look.console == "");
  CHECK(look.found["hidden"] == false);
  CHECK(look.found["before"] == 31 * 3 + 1);  // 31 * 3 rows, and the row of chance
  CHECK(look.found["filtered"] == nlohmann::json({"chance", "method_3", "method_7", "method_30"}));
  CHECK(look.found["faint"][0] == 0);
  CHECK(look.found["faint"][1] > 100);
  CHECK(look.found["after"] == 31 * 3 + 1);
  CHECK(look.found["first"] == "chance");
  CHECK(look.found["last"] == "–");  // rows without a value come last in ascending and in descending order
  const auto numbers = [](const nlohmann::json& cells) {
    std::vector<double> values;
    for (std::size_t i = 1; i < cells.size(); ++i)
      if (const std::string text = cells[i]; text != "–") values.push_back(std::stod(text));
    return values;
  };
  const std::vector<double> up = numbers(look.found["up"]), down = numbers(look.found["down"]);
  CHECK(up.size() > 80);
  CHECK(std::ranges::is_sorted(up));
  CHECK(std::ranges::is_sorted(down, std::greater<>()));
}

TEST_CASE("look_at() finds errors of a page's script and overflowing parts") {
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  const Look broken = look_at(
      "<body><script>throw new Error('broken')</script><div style='width:2000px'>x</div></body>", 390, false, overflow);
  CHECK_THAT(broken.console, contains("broken"));
  CHECK(broken.found["sideways"] > 1000);
}

TEST_CASE("several learning rates and long names fit a phone") {
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  StudyResults input = study_of(8, 2);
  for (TrialResult& a : input.trials) a.method += "_with_a_long_name_indeed";
  const std::vector<TrialResult> once = input.trials;
  for (const double rate : {1e-3, 1e-2})
    for (TrialResult a : once) a.point.set("lr", rate), input.trials.push_back(a);
  const Look look = look_at(render(input).html, 390, false, overflow);
  INFO(look.found.dump());
  CHECK(look.console == "");
  CHECK(look.found["sideways"] == 0);
  CHECK(look.found["out"].empty());
}

TEST_CASE("small and empty and single studies fit a phone") {
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  StudyResults one = study_of(1, 1);
  one.question = "Does a method with a very_long_name_that_has_no_place_to_break_in_it_at_all fit?";
  one.trials.resize(1), one.records.resize(1);
  for (const StudyResults& input : {study_of(2, 1), one, StudyResults{.name = "Nothing yet"}}) {
    const Look look = look_at(render(input).html, 390, false, overflow);
    INFO(look.found.dump());
    CHECK(look.console == "");
    CHECK(look.found["sideways"] == 0);
    CHECK(look.found["out"].empty());
  }
}

TEST_CASE("a wide table keeps its last column in view on a phone and on a desktop") {
  if (!browser()) PLUMB_SKIP("Chromium is not installed, so reports cannot be checked");
  StudyResults input{.name = "Wide"};
  Section& section = input.sections.emplace_back(Section{.title = "Wide"});
  std::vector<std::string> row;
  for (int i = 0; i < 16; ++i)
    section.table.column(fmt::format("column {}", i), TextTable::Align::left), row.push_back("a cell of words");
  row.back() = "the verdict on a method with its reason";
  section.table.row(row);
  const std::string html = results_report(input).html;
  for (const int width : {390, 1280}) {
    const Look look = look_at(html, width, false, R"js(
      const frame = document.querySelector('.scroll'), row = frame.querySelector('tbody tr'), seen = [];
      for (const at of [0, 300, frame.scrollWidth]) {
        frame.scrollLeft = at;
        const all = frame.getBoundingClientRect(), first = row.cells[0].getBoundingClientRect(), last = row.cells[15].getBoundingClientRect();
        seen.push(first.left >= all.left - 1 && last.right <= all.right + 1 && last.left - first.right > 60);
      }
      return {wide: frame.scrollWidth > frame.clientWidth, seen: seen};
    )js");
    INFO(width << look.found.dump());
    CHECK(look.found["wide"] == true);
    CHECK(look.found["seen"] == nlohmann::json({true, true, true}));
  }
}
