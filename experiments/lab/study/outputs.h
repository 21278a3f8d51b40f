// The outputs of a study. The outputs are results from the trials of a sweep, files in the study folder, and text on
// the terminal.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/run/folder.h"
#include "experiments/lab/study/declaration.h"
#include "experiments/lab/study/sweep.h"

namespace plumb::lab {

// The ended trials of a sweep with all verdicts, for a study folder with this run.json.
StudyResults judged_results(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep,
                            const StudyDescription& run);
// The same, with sections, settings and notes.
StudyResults results_of(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep, const StudyFolder& folder);

// `between`: trials may still follow. `last`: no trial follows, so the figures are written as well.
enum class Writing { between, last };
// Writes the files of the study folder, other than run.json and the ledger, from the results.
void write_files(const StudyDeclaration& study, const StudyResults& results, const Report& report, Writing when);
// The names of the files that this study writes in addition to the files of every study.
std::vector<std::string> own_files(const StudyDeclaration& study);

// Prints the results to stdout: the text of the report, or rows with --json. Notes go to stderr.
void print(const StudyDeclaration& study, const Sweep& sweep, const StudyResults& results, const Report& report);
// The names of the values that the progress line of an ended trial shows.
std::vector<std::string> shown_in_progress(const StudyDeclaration& study, const Record& record);
// A count with its noun: "1 trial", "2 trials".
std::string plural(std::size_t count, const char* noun);

}  // namespace plumb::lab
