// What a study tells: its results from the trials of a sweep, the files of its folder, and the table on the terminal.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/run/folder.h"
#include "experiments/lab/study/declaration.h"
#include "experiments/lab/study/sweep.h"

namespace plumb::lab {

StudyResults results_of(const StudyDeclaration& study, const Plan& plan, const Sweep& sweep, const StudyFolder& folder);
// The study's own display, or the library's.
Display display_of(const StudyDeclaration& study, const StudyResults& results);

// The ledger holds the results; these files are made from them. Trials are yet to come, or not: figures are written at
// the last alone.
enum class Writing { between, last };
void write_files(const StudyDeclaration& study, const StudyResults& results, const Display& display, Writing when);
// The names of the files that the study writes besides those of every study.
std::vector<std::string> own_files(const StudyDeclaration& study);

// The table on stdout, or with --json the rows.
void print(const StudyDeclaration& study, const Sweep& sweep, const StudyResults& results, const Display& display);
// The values that the progress shows of a trial that ended.
std::vector<std::string> shown_in_progress(const StudyDeclaration& study, const Record& record);
// "1 run", "2 runs"
std::string plural(std::size_t count, const char* noun);

}  // namespace plumb::lab
