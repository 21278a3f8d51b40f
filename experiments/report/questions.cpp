#include "experiments/report/questions.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "experiments/lab/plot/text_table.h"

namespace plumb::lab {
namespace {

using Cells = std::vector<std::string>;

// The cells of a row of a Markdown table; empty for another line.
Cells cells_of(const std::string& line) {
  Cells cells;
  if (!line.starts_with("|") || !line.ends_with("|") || line.size() < 2) return cells;
  for (const auto part : std::views::split(std::string_view(line).substr(1, line.size() - 2), '|')) {
    const std::string_view cell(part.begin(), part.end());
    const auto first = cell.find_first_not_of(' ');
    cells.emplace_back(first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// The verdicts in the order of the table: as claims have them, and as readers do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> verdicts{
    {{"agree", "confirmed"},
     {"disagree", "contradicted"},
     {"equal", "equal"},
     {"depends", "depends"},
     {"undecided", "undecided"},
     {"cannot be judged", "cannot be judged"},
     {"old trials", "old trials"}}};
constexpr std::string_view not_run = "not run under this protocol", not_askable = "cannot be asked at this size";

// A row of the new table. Rows are sorted by rank.
struct Row {
  std::size_t rank = 0;
  Cells cells = {};
};

// The reason of a verdict as two cells: the effect at each place, and the seeds that failed. A reason is a list of
// parts with semicolons, such as "6:0, lower by 0.2; 0 and 1 of 6 seeds failed; ...". If a claim has several places,
// the first part of each begins with the place and its verdict.
struct Reason {
  std::string effect, seeds;
};
Reason reason_of(std::string_view why) {
  Reason reason;
  bool first = true;
  for (const auto part : std::views::split(why, std::string_view("; "))) {
    const std::string text(part.begin(), part.end());
    if (!text.ends_with(" seeds failed"))
      reason.effect += (first ? "" : "; ") + text;
    else if (reason.seeds.find(text) == text.npos)
      reason.seeds += (reason.seeds.empty() ? "" : "; ") + text;
    first = false;
  }
  return reason;
}

Row answered(const std::string& ledger, const Cells& claim, const std::string& flips, const std::string& folder) {
  // The columns of a table of claims: claim, source, measure, verdict, why.
  std::string verdict = claim[3];
  std::erase(verdict, '*');
  const auto known = std::ranges::find_if(verdicts, [&](const auto& v) { return verdict.starts_with(v.first); });
  check(known != verdicts.end(), "[report] {}: unknown verdict '{}'", ledger, verdict);
  verdict = std::string(known->second) + verdict.substr(known->first.size());
  auto rank = static_cast<std::size_t>(known - verdicts.begin());
  // A claim that was added later is never counted as confirmed.
  if (claim[3].find("(post hoc)") != std::string::npos)
    verdict = "post hoc: " + verdict.substr(0, verdict.find(" (post hoc)")), rank = verdicts.size();
  const Reason reason = reason_of(claim[4]);
  return {rank,
          {fmt::format("**{}**", verdict), fmt::format("{} ({})", claim[0], claim[1]),
           fmt::format("{}: {}", claim[2], reason.effect), reason.seeds, flips,
           fmt::format("[{0}]({1}/{0}.md)", ledger, folder)}};
}

Row row_of(const Cells& question, const std::map<std::string, std::string>& tables, const std::string& folder) {
  const std::string &ledger = question[0], &text = question[1], &flips = question[2];
  const auto unanswered = [&](std::size_t rank, std::string_view words, const std::string& page) {
    return Row{rank, {fmt::format("**{}**", words), text, "", "", flips, page}};
  };
  if (ledger == "–") return unanswered(verdicts.size() + 2, not_askable, "");
  const auto table = tables.find(ledger);
  if (table == tables.end()) return unanswered(verdicts.size() + 1, not_run, ledger);
  std::istringstream lines(table->second);
  for (std::string line; std::getline(lines, line);)
    if (const Cells claim = cells_of(line); claim.size() == 5 && claim[0] == text)
      return answered(ledger, claim, flips, folder);
  fail(fmt::format("[report] {} has no claim '{}'; its results.md lists its claims", ledger, text));
}

}  // namespace

std::string with_verdicts(const std::string& text, const std::map<std::string, std::string>& tables,
                          const std::string& folder) {
  const Cells head{"ledger", "claim", "what flips it"};
  std::string result;
  std::istringstream lines(text);
  std::string line;
  bool more = static_cast<bool>(std::getline(lines, line));
  while (more) {
    if (cells_of(line) != head) {
      result += line + "\n";
      more = static_cast<bool>(std::getline(lines, line));
      continue;
    }
    std::getline(lines, line);  // the line below the header
    std::vector<Row> rows;
    while ((more = static_cast<bool>(std::getline(lines, line)))) {
      const Cells question = cells_of(line);
      if (question.empty()) break;
      check(question.size() == head.size(), "[report] expected the cells ledger, claim and what flips it, got: {}",
            line);
      rows.push_back(row_of(question, tables, folder));
    }
    std::ranges::stable_sort(rows, {}, &Row::rank);
    TextTable table;
    for (const char* column : {"verdict", "question", "effect", "failed seeds", "what flips it", "page"})
      table.column(column, TextTable::Align::left);
    for (Row& row : rows) table.row(std::move(row.cells));
    result += table.markdown();
  }
  return result;
}

}  // namespace plumb::lab
