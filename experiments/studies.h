// The studies of Plumb, for bin/report, bin/merge and bin/replay. Only the code of a study can make the tables of the
// study. A study folder may come from elsewhere, so these programs never execute the program that run.json names:
// they call the function of a study that is compiled into them, or the program that the user typed (--program).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// A study of Plumb: the name of its experiment, and the function that is the whole program.
struct KnownStudy {
  std::string_view name;
  int (*run)(int argc, const char* const* argv);
};

// All studies of Plumb. A test compares the list with the folders of experiments/.
std::span<const KnownStudy> known_studies();

// declare_program() declares the option --program, and declare_accept_code() the option --accept-code. rebuild_words()
// returns the arguments with which call_study() makes the tables and the report again.
void declare_program(Cli& cli, std::string& program);
void declare_accept_code(Cli& cli, std::string& accept_code);
std::vector<std::string> rebuild_words(const std::string& accept_code);

// Throws UsageError if the study is not a study of Plumb and `program` is empty. The message has the command that shows
// the study with its own program. `study` is a study folder or a kept ledger.
void check_known(const std::filesystem::path& study, const StudyDescription& run, const std::string& program,
                 const std::vector<std::string>& more);

// Calls the study with --config FOLDER/run.json --out FOLDER and the arguments `more`, in a forked process: the
// function of known_studies(), or `program` if it is not empty. `study` is the folder or the kept ledger that messages
// name. Returns the exit status, or 128 + the signal that ended the process. Throws the error of check_known(). Throws
// Error if `program` cannot be run, or if this process has several threads, which a forked process would lack.
enum class Tables { printed, not_printed };
int call_study(const std::filesystem::path& study, const std::filesystem::path& folder, const StudyDescription& run,
               const std::string& program, const std::vector<std::string>& more, Tables tables = Tables::printed);

}  // namespace plumb::lab
