// The questions of a page of results, with the verdicts of the claims that answer them.
#pragma once

#include <map>
#include <string>

namespace plumb::lab {

// Replaces the tables of questions in a Markdown text. Such a table has the header
//
//   | ledger | claim | what flips it |
//
// and one row for each question. Column `ledger` has a name from `tables`, which maps the names of kept ledgers to
// their tables as Markdown (results.md); column `claim` has the text of a claim of that ledger. The new table has the
// claim with its source, the verdict, the effect on the measure, the seeds, the last column, and a link to the page of
// the ledger, <folder>/<ledger>.md. Its rows are sorted by verdict: confirmed, contradicted, depends on an axis,
// undecided, post hoc, then the questions whose ledger does not exist, which are "not run under this protocol" and have
// the name of the ledger instead of a link, then those with a dash instead of a ledger, which "cannot be asked at this
// size". Throws Error if a ledger does not have the claim.
std::string with_verdicts(const std::string& text, const std::map<std::string, std::string>& tables,
                          const std::string& folder);

}  // namespace plumb::lab
