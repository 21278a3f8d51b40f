#include "experiments/report/results_page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "core/atomic_file.h"
#include "core/error.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/measure.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using enum TextTable::Align;
using Arm = KeptStudy::Arm;
using Decision = KeptStudy::Decision;

// The rows of a CSV file as pairs of column and cell; empty if there is no file. Cells may be quoted as in RFC 4180.
using CsvRow = std::vector<std::pair<std::string, std::string>>;
std::vector<CsvRow> rows_of(const fs::path& file) {
  if (!fs::exists(file)) return {};
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (const char c : read_file(file)) {
    std::string& cell = lines.back().back();
    if (c == '"')
      quoted = !quoted;  // a doubled quote ends and begins a quoted part, and texts of claims have none
    else if (quoted || (c != ',' && c != '\n'))
      cell += c;
    else if (c == ',')
      lines.back().emplace_back();
    else
      lines.push_back({""});
  }
  std::vector<CsvRow> rows;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    CsvRow& row = rows.emplace_back();
    for (std::size_t c = 0; c < std::min(lines[0].size(), lines[i].size()); ++c)
      row.emplace_back(lines[0][c], lines[i][c]);
  }
  return rows;
}
std::string cell_of(const CsvRow& row, std::string_view column) {
  const auto found = std::ranges::find(row, column, &CsvRow::value_type::first);
  return found == row.end() ? "" : found->second;
}
template <class T>
std::optional<T> number_from(const std::string& text) {
  T number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                   : std::nullopt;
}

// The measure over the seeds that trained.
Summary summary_of(const Arm& arm, const std::string& measure) {
  std::vector<double> values;
  for (const TrialResult& t : arm.judged)
    if (t.trained) values.push_back(t.value(measure).value_or(NAN));
  return summarize(values);
}

std::size_t failed(const Arm& arm) {
  return static_cast<std::size_t>(std::ranges::count_if(arm.judged, [](const TrialResult& t) { return !t.trained; }));
}

std::string value_of(const Arm& arm, const std::string& what) {
  if (what == "failed") return fmt::format("{} of {}", failed(arm), arm.judged.size());
  if (what == "rates")
    return arm.rates.empty()       ? "none"
           : arm.rates.size() == 1 ? fmt::format("{:.2g}", *arm.rates.begin())
                                   : fmt::format("{:.2g} to {:.2g}", *arm.rates.begin(), *arm.rates.rbegin());
  const Summary s = summary_of(arm, what);
  if (unit_of({}, what) != Unit::fraction || s.n == 0) return to_string(s);
  return fmt::format("{:.1f}{} %", 100 * s.mean, s.half_width ? fmt::format(" ± {:.1f}", 100 * *s.half_width) : "");
}

// A difference with its sign and, if there is one, its interval: "-0.46 (-0.49 to -0.43)".
std::string signed_words(const Median& m, bool in_points) {
  if (m.n == 0 || !std::isfinite(m.value)) return "";
  const auto number = [&](double v) { return in_points ? fmt::format("{:+.1f}", 100 * v) : fmt::format("{:+.2g}", v); };
  return number(m.value) + (m.low ? fmt::format(" ({} to {})", number(*m.low), number(*m.high)) : "");
}

Median median_from(const CsvRow& row, const char* value, const char* low = "", const char* high = "") {
  Median m{.value = number_from<double>(cell_of(row, value)).value_or(NAN)};
  m.n = std::isfinite(m.value), m.low = number_from<double>(cell_of(row, low));
  m.high = number_from<double>(cell_of(row, high));
  return m;
}

// The median of the differences of two arms at the seeds at which both trained.
Median difference_of(const Arm& a, const Arm& b, const std::string& measure) {
  std::vector<double> differences;
  for (const TrialResult& one : a.judged)
    for (const TrialResult& other : b.judged)
      if (one.seed() == other.seed() && one.trained && other.trained)
        if (const auto x = one.value(measure), y = other.value(measure); x && y) differences.push_back(*x - *y);
  return median_of(differences);
}

std::string seeds_of(const CsvRow& row) {
  std::string text = fmt::format("{}:{}", cell_of(row, "wins"), cell_of(row, "losses"));
  const std::string first = cell_of(row, "failed_first"), second = cell_of(row, "failed_second");
  return first == "0" && second == "0" ? text : text + fmt::format(", {} and {} failed", first, second);
}

Decision decision_on_claim(const CsvRow& row) {
  const std::string verdict = cell_of(row, "verdict"), at = cell_of(row, "at");
  Decision d{
      .text = fmt::format("{}{} ({})", cell_of(row, "claim"), at.empty() ? "" : ", " + at, cell_of(row, "source")),
      .verdict = verdict == "agree"      ? "confirmed"
                 : verdict == "disagree" ? "contradicted"
                 : verdict == "equal"    ? "equal"
                                         : "",
      .seeds = seeds_of(row)};
  if (!d.verdict.empty() && cell_of(row, "post_hoc") == "yes") d.verdict += ", post hoc";
  for (const auto& [measure, text] : {std::pair("train_loss", &Decision::train_loss),
                                      {"val_loss", &Decision::val_loss},
                                      {"val_accuracy", &Decision::val_accuracy}})
    d.*text = signed_words(
        cell_of(row, "measure") == measure ? median_from(row, "difference", "low", "high") : median_from(row, measure),
        measure == std::string("val_accuracy"));
  return d;
}

Decision decision_on_methods(const CsvRow& row, const std::vector<Arm>& arms) {
  const std::string first = cell_of(row, "first"), second = cell_of(row, "second"), words = cell_of(row, "verdict");
  const std::int64_t depth = number_from<std::int64_t>(cell_of(row, "depth")).value_or(0);
  const std::string at =
      cell_of(row, "lr_first").empty() && !cell_of(row, "lr").empty() ? " lr " + cell_of(row, "lr") : "";
  Decision d{
      .text = fmt::format("{}{} against {}{}", depth > 0 ? fmt::format("depth {}: ", depth) : "", first, second, at),
      .verdict = words == "no verdict"        ? ""
                 : words.starts_with("equal") ? "equal"
                                              : words,
      .seeds = seeds_of(row),
      .train_loss = signed_words(median_from(row, "difference", "low", "high"), false)};
  const auto named = [&](const std::string& method) {
    return std::ranges::find_if(
        arms, [&](const Arm& a) { return (a.method == method || a.method == method + at) && a.depth == depth; });
  };
  if (const auto a = named(first), b = named(second); a != arms.end() && b != arms.end()) {
    d.val_loss = signed_words(difference_of(*a, *b, "val_loss"), false);
    d.val_accuracy = signed_words(difference_of(*a, *b, "val_accuracy"), true);
  }
  return d;
}

}  // namespace

KeptStudy::KeptStudy(const fs::path& ledger, const StudyDescription& run, const fs::path& folder, std::string page_link)
    : name(ledger.stem().string()), page(std::move(page_link)), is_old(run.rule.empty()) {
  const double chance = run.facts.data.chance().loss;
  const Ledger all(ledger);
  std::map<std::string, std::set<std::string>> values;  // of the judged trials, by axis
  bool searched = false;
  for (const LedgerEntry& e : all.entries()) {
    searched = searched || !is_judged(e.record.point);
    if (is_judged(e.record.point))
      for (const auto& [axis, value] : e.record.point.entries()) values[axis].insert(to_string(value));
  }
  if (searched) values.erase("lr");  // each combination of the other axes has its own rate
  const auto arm_of = [&](const Point& point) -> Arm& {
    Point method = searched ? lab::cell_of(point) : point.without("seed");
    for (const auto& [axis, value] : point.entries())
      if (axis == "depth" || (axis != "gate" && values[axis].size() < 2)) method = method.without(axis);
    for (Arm& arm : arms)
      if (arm.method == method.label() && arm.depth == depth_of(point)) return arm;
    return arms.emplace_back(Arm{.method = method.label(), .depth = depth_of(point)});
  };
  // Numbers of trials by arm and rate: judged and neighbours, those of them that trained, and trials of searches that
  // trained.
  std::map<std::pair<std::size_t, double>, std::array<int, 3>> at_rates;
  for (const LedgerEntry& e : all.entries()) {
    const Record& r = e.record;
    TrialResult trial{.point = r.point, .status = r.status, .steps = r.steps, .seconds = r.seconds, .values = r.values};
    trial.trained = has_trained(trial, chance);
    Arm& arm = arm_of(r.point);
    auto& [of_judged, trained, others] = at_rates[{static_cast<std::size_t>(&arm - arms.data()), trial.lr()}];
    if (r.steps > 0) arm.step = std::min(arm.step, r.seconds / static_cast<double>(r.steps));
    if (is_of_search(r.point)) {
      others += trial.trained;
      continue;
    }
    ++of_judged, trained += trial.trained;
    if (is_neighbour(r.point)) continue;
    if (!arm.judged.empty() && arm.judged.back().lr() != trial.lr()) arm.judged.clear();  // former rates come first
    arm.judged.push_back(std::move(trial));
  }
  std::set<std::size_t> beyond;  // the arms for which a lower rate failed: other seeds may fail at higher rates, too
  for (const auto& [at, counts] : at_rates) {  // in ascending order of rates
    const auto& [index, rate] = at;
    const auto& [of_judged, trained, others] = counts;
    std::set<double>& rates = arms[index].rates;
    if (of_judged > 0 ? 2 * trained > of_judged : others > 0) {
      if (rate > 0 && !beyond.contains(index)) rates.insert(rate);
    } else if (of_judged > 0 && !rates.empty()) {
      beyond.insert(index);
    }
  }
  std::erase_if(arms, [](const Arm& arm) { return arm.judged.empty(); });
  for (const CsvRow& row : rows_of(folder / "claims.csv"))
    if (cell_of(row, "seeds") != "0") decisions.push_back(decision_on_claim(row));
  if (decisions.empty())
    for (const CsvRow& row : rows_of(folder / "comparisons.csv"))
      if (cell_of(row, "family") == "control") decisions.push_back(decision_on_methods(row, arms));
}

namespace {

class Answers {
 public:
  explicit Answers(const std::vector<KeptStudy>& studies) : studies_(studies) {}

  // The answer to the words between braces.
  std::string operator()(const std::string& words) const {
    std::istringstream in(words);
    const std::vector<std::string> all(std::istream_iterator<std::string>(in), {});
    if (words == "decided") return decided();
    if (words == "studies") return studies();
    if (words.starts_with("methods ")) return methods(fmt::format("{}", fmt::join(all.begin() + 1, all.end(), " ")));
    if (all.size() == 3 && all[0] == "best") return best(study(all[1]), depth_from(all[2]));
    check(all.size() >= 4, "[report] expected words such as 'val_accuracy LEDGER METHOD DEPTH', got '{}'", words);
    const std::string method = fmt::format("{}", fmt::join(all.begin() + 2, all.end() - 1, " "));
    const KeptStudy& s = study(all[1]);
    check(all[0] == "failed" || all[0] == "rates" ||
              std::ranges::any_of(s.arms,
                                  [&](const Arm& a) {
                                    return std::ranges::any_of(
                                        a.judged, [&](const TrialResult& t) { return t.value(all[0]).has_value(); });
                                  }),
          "[report] the trials of {} have not measured {}", s.name, all[0]);
    return value_of(arm(s, method, depth_from(all.back())), all[0]);
  }

 private:
  const KeptStudy& study(const std::string& name) const {
    const auto found = std::ranges::find(studies_, name, &KeptStudy::name);
    check(found != studies_.end(), "[report] no ledger has the name '{}'", name);
    return *found;
  }
  static std::int64_t depth_from(const std::string& text) {
    const std::optional<std::int64_t> depth = number_from<std::int64_t>(text);
    check(depth.has_value(), "[report] expected a depth, got '{}'", text);
    return *depth;
  }
  static const Arm& arm(const KeptStudy& s, const std::string& method, std::int64_t depth) {
    for (const Arm& a : s.arms)
      if (a.method == method && a.depth == depth) return a;
    fail(fmt::format("[report] {} has no trials of {} at depth {}", s.name, method, depth));
  }
  // The arms of a depth: those with the fewest failed seeds first, and of these the one with the highest mean accuracy.
  static std::vector<const Arm*> ranked(const KeptStudy& s, std::int64_t depth) {
    std::vector<const Arm*> arms;
    for (const Arm& a : s.arms)
      if (a.depth == depth) arms.push_back(&a);
    check(!arms.empty(), "[report] {} has no trials at depth {}", s.name, depth);
    std::ranges::stable_sort(arms, {}, [](const Arm* a) {
      const Summary accuracy = summary_of(*a, "val_accuracy");
      return std::pair(failed(*a), accuracy.n > 0 ? -accuracy.mean : 0);
    });
    return arms;
  }
  static std::string best(const KeptStudy& s, std::int64_t depth) {
    std::string text;
    int count = 0;
    for (const Arm* a : ranked(s, depth))
      if (++count <= 3)
        text += fmt::format("{}{}, {}{}",
                            count == 1   ? ""
                            : count == 2 ? ", then "
                                         : " and ",
                            escape_markdown(a->method), value_of(*a, "val_accuracy"),
                            failed(*a) > 0 ? fmt::format(" ({} seeds failed)", value_of(*a, "failed")) : "");
    return text;
  }

  // The time of a step as a multiple of that of pre: the least over the depths, as a machine has slow phases.
  static double relative_time(const KeptStudy& times, const std::string& method) {
    double least = INFINITY;
    for (const Arm& a : times.arms)
      if (a.method == method) least = std::min(least, a.step / arm(times, "pre", a.depth).step);
    check(std::isfinite(least), "[report] {} has no trials of {}", times.name, method);
    return least;
  }

  // The arms of a ledger at a depth, and what is added to the names of their methods.
  struct Part {
    const KeptStudy* study;
    std::int64_t depth;
    std::string note;
  };
  std::string methods(const std::string& list) const {
    std::vector<Part> parts;
    const KeptStudy* times = nullptr;
    std::istringstream in(list);
    for (std::string item; std::getline(in, item, ';');) {
      std::istringstream words(item);
      std::string ledger, depth, note;
      words >> ledger >> depth, std::getline(words, note);
      if (ledger == "time")
        times = &study(depth);
      else
        parts.push_back({&study(ledger), depth_from(depth), note});
    }
    std::set<std::int64_t> depths;
    std::vector<std::string> names;
    std::map<std::pair<std::string, std::int64_t>, std::vector<std::string>> cells;
    std::map<std::string, std::string> time;  // by name
    for (const auto& [study, depth, note] : parts) {
      depths.insert(depth);
      for (const Arm* a : ranked(*study, depth)) {
        const std::string name = a->method + note;
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
        auto& row = cells[{name, depth}];
        check(row.empty(), "[report] the table has two rows {} at depth {}; give one of the ledgers a note", name,
              depth);
        for (const char* what : {"val_accuracy", "failed", "rates"}) row.push_back(value_of(*a, what));
        if (times) time[name] = fmt::format("{:.2f}", relative_time(*times, a->method));
      }
    }
    TextTable table;
    table.column("method", left);
    for (const std::int64_t depth : depths) {
      table.column(fmt::format("{} blocks: accuracy", depth), right);
      table.column("failed seeds", right), table.column("rates that train", right);
    }
    if (times) table.column("time", right);
    for (const std::string& name : names) {
      std::vector<std::string> row{escape_markdown(name)};
      for (const std::int64_t depth : depths) {
        std::vector<std::string>& there = cells[{name, depth}];
        there.resize(3), row.insert(row.end(), there.begin(), there.end());
      }
      if (times) row.push_back(time[name]);
      table.row(std::move(row));
    }
    return table.markdown();
  }

  std::string decided() const {
    TextTable table;
    for (const char* column : {"verdict", "claim", "seeds"}) table.column(column, left);
    for (const char* column : {"training loss", "validation loss", "accuracy, points"}) table.column(column, right);
    table.column("page", left);
    for (const KeptStudy& s : studies_)
      for (const Decision& d : s.decisions)
        if (!d.verdict.empty())
          table.row({fmt::format("**{}**", d.verdict), escape_markdown(d.text), d.seeds, d.train_loss, d.val_loss,
                     d.val_accuracy, fmt::format("[{}]({})", s.name, s.page)});
    return table.empty() ? "No claim is decided so far.\n" : table.markdown();
  }

  std::string studies() const {
    std::string text;
    for (const KeptStudy& s : studies_) {
      const auto decisions = std::ssize(s.decisions), open = std::ranges::count(s.decisions, "", &Decision::verdict);
      text += fmt::format("- [{}]({}): ", s.name, s.page);
      text += s.is_old         ? "old; "
              : decisions == 0 ? ""
                               : fmt::format("{} of {} comparisons decided; ", decisions - open, decisions);
      std::map<std::int64_t, std::vector<double>> accuracies;  // the means of the arms by depth
      for (const Arm& a : s.arms)
        if (const Summary accuracy = summary_of(a, "val_accuracy"); accuracy.n > 0)
          accuracies[a.depth].push_back(100 * accuracy.mean);
      text += fmt::format("{} arms", s.arms.size());
      for (const auto& [depth, means] : accuracies)
        text +=
            fmt::format("{}{}{:.1f} to {:.1f} %", &depth == &accuracies.begin()->first ? ", mean accuracies " : ", ",
                        accuracies.size() > 1 ? fmt::format("at depth {} ", depth) : "", std::ranges::min(means),
                        std::ranges::max(means));
      text += "\n";
    }
    return text;
  }

  const std::vector<KeptStudy>& studies_;
};

}  // namespace

std::string with_answers(const std::string& text, const std::vector<KeptStudy>& studies) {
  const Answers answer(studies);
  std::string result;
  std::size_t from = 0;
  for (std::size_t open; (open = text.find('{', from)) != text.npos;) {
    const std::size_t close = text.find('}', open);
    check(close != text.npos, "[report] the text has a '{{' without a '}}'");
    result += text.substr(from, open - from) + answer(text.substr(open + 1, close - open - 1));
    from = close + 1;
    if (result.ends_with('\n') && from < text.size() && text[from] == '\n') ++from;  // a table has its line end
  }
  return result + text.substr(from);
}

}  // namespace plumb::lab
