// The results of a study as text for a terminal and as results.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The answer of a study in a sentence, with which its reports begin. The first of these that there is: the answer of a
// section; the first decided claim, primary claims before others and planned ones before later ones, with the number of
// decided claims; the sentence on the leading() condition. Empty if nothing is judged.
std::string answer_of(const StudyResults& results);
// The claims that reports list: none before the first trial has ended, and none with a single judged seed, which decides
// no claim.
std::span<const JudgedClaim> listed_claims(const StudyResults& results);
// The sentences on the conditions other than the answer. The largest depth comes first.
std::vector<std::string> further_sentences(const StudyResults& results);
// Lines below the verdicts: about the family of claims or the single seed, about saturation, and the known levels.
std::vector<std::string> remarks(const StudyResults& results);

// Text for a terminal: the answer, a table of means over seeds with 95 % t intervals, the claims with their verdicts,
// the remarks, and the tables in the sections of the study.
std::string results_text(const StudyResults& results, bool colour);
// The text of results.md: the answer, the table, the claims, the sections and the verdicts in Markdown.
std::string results_markdown(const StudyResults& results);

}  // namespace plumb::lab
