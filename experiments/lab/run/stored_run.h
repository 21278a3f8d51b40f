// The folder of a run as programs about folders see it, whatever program wrote it: bin/merge, bin/report, bin/replay. A
// study's tables and report are its own program's: run.json names it, and it is run again with --rebuild or --replay.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// Whether a path is a ledger that `report --keep` has copied for documents: NAME.jsonl, with NAME.json, its
// description, beside it.
bool is_kept(const std::filesystem::path& path);
std::filesystem::path description_of(const std::filesystem::path& ledger);

// The description of a run's folder or of a kept ledger. Throws UsageError where there is none.
StudyDescription described(const std::filesystem::path& folder_or_ledger);

// Runs the program of a folder, found beside this one or where run.json says, with --config DIR/run.json --out DIR and
// `more`. Returns its exit status; throws Error where the program cannot be started.
enum class Tables { printed, not_printed };
int run_program(const std::filesystem::path& folder, const StudyDescription& run, const std::vector<std::string>& more,
                Tables tables = Tables::printed);

// --accept-code, and the arguments of run_program that make tables and report anew.
void declare_accept_code(Cli& cli, std::string& accept_code);
std::vector<std::string> rebuild_words(const std::string& accept_code);

}  // namespace plumb::lab
