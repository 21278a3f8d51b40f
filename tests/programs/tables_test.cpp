// Every table of training outcomes in README.md and docs/ comes from a kept ledger. The line
// <!-- ledger: docs/results/NAME.jsonl .. --> stands before such a table or before the printed table of a program. These
// tests find tables without such a line, and numbers that no trials of the ledger have.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
namespace fs = std::filesystem;

namespace {

// A table in a page: its lines, and the ledgers that are named before it.
struct PageTable {
  std::string ledger = {};
  std::vector<std::string> lines = {};
};

bool is_row(const std::string& line) { return line.starts_with("|") || line.starts_with("    "); }

// Whether a table states training outcomes: its header names a loss or an accuracy, or a cell has an interval.
bool states_outcomes(const PageTable& table) {
  static const std::regex words("\\b(train.loss|training loss|val.loss|val\\.? acc|val_accuracy|accuracy)\\b"),
      interval("[0-9]\\.[0-9]+ ± [0-9]");
  return std::regex_search(table.lines.front(), words) ||
         std::ranges::any_of(table.lines, [&](const std::string& l) { return std::regex_search(l, interval); });
}

std::vector<PageTable> tables_of(const std::string& page) {
  static const std::regex marker("<!-- ledger: (.*) -->");
  std::vector<PageTable> tables;
  std::string ledger;
  bool within = false, code = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    std::smatch match;
    if (std::regex_match(line, match, marker)) ledger = match[1];
    const bool row = is_row(line) && !code;
    if (row && !within) tables.push_back({.ledger = std::exchange(ledger, "")});
    if (row) tables.back().lines.push_back(line);
    within = row;
  }
  return tables;
}

// The numbers that a ledger has for a method or another value of an axis: the values of each trial, their means over
// the seeds that ended ok and over those that trained, half the widths of the intervals, and the values of the axes. An
// accuracy is in percent.
struct Known {
  std::map<std::string, std::vector<double>> by_name = {};
  std::map<std::string, std::vector<std::string>> counts = {};  // "3 of 5 diverged", "2 of 5 trained"
};

void add_numbers(std::vector<double>& numbers, const std::vector<const TrialResult*>& trials) {
  std::map<std::string, std::vector<double>> values;
  for (const TrialResult* t : trials)
    for (const auto& [name, value] : t->values)
      values[name].push_back((unit_of({}, name) == Unit::fraction ? 100 : 1) * value);
  for (const auto& [name, all] : values) {
    const Summary s = summarize(all);
    numbers.push_back(s.mean);
    if (s.half_width) numbers.push_back(*s.half_width);
    numbers.insert(numbers.end(), all.begin(), all.end());
  }
}

void add_known_numbers(Known& known, const fs::path& file) {
  const Ledger ledger(file);
  const fs::path description = fs::path(file).replace_extension(".json");
  const double chance = StudyDescription::parse(read_file(description), description.string()).facts.data.chance().loss;
  std::vector<TrialResult> trials;
  for (const LedgerEntry& e : ledger.entries())
    if (is_judged(e.record.point)) {
      trials.push_back({.point = e.record.point, .status = e.record.status, .values = e.record.values});
      trials.back().trained = has_trained(trials.back(), chance);
    }
  struct Group {
    Point point;
    std::vector<const TrialResult*> ok, trained;
    int diverged = 0, all = 0;
  };
  std::map<std::string, Group> groups;
  for (const TrialResult& t : trials) {
    const Point point = t.point.without("seed");
    Group& group = groups[point.label()];
    group.point = point;
    ++group.all, group.diverged += t.status == Status::diverged;
    if (t.status == Status::ok) group.ok.push_back(&t);
    if (t.trained) group.trained.push_back(&t);
  }
  for (const auto& [label, group] : groups) {
    std::vector<double> numbers;
    add_numbers(numbers, group.ok), add_numbers(numbers, group.trained);
    std::vector<std::string> names;
    for (const auto& [axis, value] : group.point.entries()) {
      names.push_back(to_string(value));
      try {
        numbers.push_back(std::stod(names.back()));
      } catch (const std::exception&) {
      }
    }
    for (const std::string& name : names) {
      auto& all = known.by_name[name];
      all.insert(all.end(), numbers.begin(), numbers.end());
      known.counts[name].push_back(fmt::format("{} of {} diverged", group.diverged, group.all));
      known.counts[name].push_back(fmt::format("{} of {} trained", group.trained.size(), group.all));
    }
  }
}

// The text of a row without Markdown's marks, and the first word of it that names a value of the ledger.
std::string plain(std::string row) {
  for (const char mark : {'*', '`', '|'}) std::ranges::replace(row, mark, ' ');
  return row;
}
std::string name_in(const std::string& row, const Known& known) {
  std::istringstream words(row);
  for (std::string word; words >> word;) {
    if (const auto end = word.find(','); end != word.npos) word.resize(end);
    if (known.by_name.contains(word)) return word;
  }
  return "";
}

// The numbers of a row that the ledger does not have.
std::vector<std::string> unknown_numbers(const std::string& row, const Known& known) {
  std::vector<std::string> unknown;
  static const std::regex number("[0-9]+\\.[0-9]+(e[-+]?[0-9]+)?"), count("[0-9]+ of [0-9]+ (diverged|trained)");
  if (!std::regex_search(row, number) && !std::regex_search(row, count)) return {};
  const std::string name = name_in(row, known);
  if (name.empty()) return {"no method of the ledger"};
  for (std::sregex_iterator it(row.begin(), row.end(), number), end; it != end; ++it) {
    const std::string text = it->str();
    const auto exponent = text.find('e');
    const double unit = exponent == text.npos ? 1 : std::pow(10, std::stoi(text.substr(exponent + 1)));
    const auto decimals = std::min(exponent, text.size()) - text.find('.') - 1;
    const double half = 0.5000001 * unit * std::pow(10, -static_cast<double>(decimals));
    const double shown = std::stod(text);
    if (std::ranges::none_of(known.by_name.at(name), [&](double v) { return std::abs(v - shown) <= half; }))
      unknown.push_back(text);
  }
  for (std::sregex_iterator it(row.begin(), row.end(), count), end; it != end; ++it)
    if (std::ranges::find(known.counts.at(name), it->str()) == known.counts.at(name).end())
      unknown.push_back(it->str());
  return unknown;
}

}  // namespace

TEST_CASE("every table of training outcomes in the docs has a ledger with its numbers") {
  const fs::path source = test::source_dir();
  std::vector<fs::path> pages{source / "README.md"};
  for (const char* folder : {"docs", "docs/tutorial", "docs/ablations", "docs/gates"})
    for (const auto& entry : fs::directory_iterator(source / folder))
      if (entry.path().extension() == ".md" && entry.path().filename() != "results.md") pages.push_back(entry.path());
  int checked = 0;
  for (const fs::path& page : pages)
    for (const PageTable& table : tables_of(read_file(page))) {
      INFO(fs::relative(page, source).string() << ": " << table.lines.front());
      if (table.ledger.empty()) {
        CHECK_FALSE(states_outcomes(table));
        continue;
      }
      Known known;
      std::istringstream ledgers(table.ledger);
      for (std::string ledger; ledgers >> ledger;) {
        REQUIRE(fs::exists(source / ledger));
        add_known_numbers(known, source / ledger);
      }
      for (std::size_t i = 0; i < table.lines.size(); ++i) {
        const std::string row = plain(table.lines[i]);
        if (row.find_first_not_of(" -:") == row.npos) continue;
        INFO(row);
        CHECK(unknown_numbers(row, known) == std::vector<std::string>());
        ++checked;
      }
    }
  CHECK(checked > 10);
}

TEST_CASE("a table without a ledger and a number that no trial has are found") {
  const std::vector<PageTable> tables = tables_of(
      "| method | training loss |\n| --- | --- |\n| pre | 0.5 |\n\ntext\n\n<!-- ledger: a.jsonl -->\n\n    gate  loss\n"
      "    pre   0.5\n\n| word | meaning |\n");
  REQUIRE(tables.size() == 3);
  CHECK(states_outcomes(tables[0]));
  CHECK(tables[0].ledger.empty());
  CHECK(tables[1].ledger == "a.jsonl");
  CHECK_FALSE(states_outcomes(tables[2]));
  CHECK(states_outcomes({.lines = {"| gate | fp32 |", "| --- | --- |", "| post | 0.378 ± 0.626 |"}}));
  const Known known{.by_name = {{"pre", {0.0123, 99.9}}}, .counts = {{"pre", {"1 of 3 diverged"}}}};
  const auto unknown = [&](const char* row) { return unknown_numbers(row, known); };
  CHECK(unknown(" pre 0.012 99.9 % 1 of 3 diverged").empty());
  CHECK(unknown(" pre 1.2e-02").empty());
  CHECK(unknown(" pre 0.013") == std::vector<std::string>{"0.013"});
  CHECK(unknown(" pre 2 of 3 diverged") == std::vector<std::string>{"2 of 3 diverged"});
  CHECK(unknown(" post 0.012") == std::vector<std::string>{"no method of the ledger"});
}
