// Access to a study folder of any program, for bin/merge, bin/report and bin/replay. Only the program of a study can
// make the tables and the report of the study. run.json names this program, and run_program() calls the program with
// --rebuild or --replay.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// is_kept() returns whether the path is a ledger NAME.jsonl that `report --keep` has copied. description_of() returns
// the path of the description of such a ledger, NAME.json.
bool is_kept(const std::filesystem::path& path);
std::filesystem::path description_of(const std::filesystem::path& ledger);

// The description of a study folder or of a kept ledger. Throws UsageError if the description does not exist.
StudyDescription described(const std::filesystem::path& folder_or_ledger);

// Runs the program that wrote `folder`, with --config DIR/run.json --out DIR and the arguments `more`. The program is
// searched first in the folder of the calling program, and then at the path in run.json. Returns the exit status of the
// program. Throws Error if the program cannot be started.
enum class Tables { printed, not_printed };
int run_program(const std::filesystem::path& folder, const StudyDescription& run, const std::vector<std::string>& more,
                Tables tables = Tables::printed);

// declare_accept_code() declares the option --accept-code. rebuild_words() returns the arguments with which
// run_program() makes the tables and the report again.
void declare_accept_code(Cli& cli, std::string& accept_code);
std::vector<std::string> rebuild_words(const std::string& accept_code);

}  // namespace plumb::lab
