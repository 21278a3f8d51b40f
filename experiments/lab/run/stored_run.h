// Access to a run folder, whichever program wrote it; used by bin/merge, bin/report and bin/replay. Only the program of
// a study can make the study's tables and report. run.json names this program; it is called with --rebuild or --replay.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// is_kept(): true for a ledger NAME.jsonl that `report --keep` has copied. description_of(): the path of its
// description, NAME.json.
bool is_kept(const std::filesystem::path& path);
std::filesystem::path description_of(const std::filesystem::path& ledger);

// The description of a run folder or of a kept ledger. Throws UsageError if it does not exist.
StudyDescription described(const std::filesystem::path& folder_or_ledger);

// Runs the program that wrote `folder`, with --config DIR/run.json --out DIR and the arguments `more`. It is searched
// in the folder of the calling program and then at the path in run.json. Returns its exit status. Throws Error if the
// program cannot be started.
enum class Tables { printed, not_printed };
int run_program(const std::filesystem::path& folder, const StudyDescription& run, const std::vector<std::string>& more,
                Tables tables = Tables::printed);

// declare_accept_code() declares the option --accept-code. rebuild_words() returns the arguments for run_program that
// make the tables and the report again.
void declare_accept_code(Cli& cli, std::string& accept_code);
std::vector<std::string> rebuild_words(const std::string& accept_code);

}  // namespace plumb::lab
