// Runs a program with a shell command, as a user does. Returns the exit status, stdout and stderr.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace plumb::test {

struct Finished {
  int status;  // exit status; 128 + signal if a signal killed the program
  std::string out, err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The rows of a CSV without quoted cells. Each row maps column names to cells.
inline std::vector<std::map<std::string, std::string>> rows_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells(1);
    for (const char c : line) c == ',' ? void(cells.emplace_back()) : void(cells.back() += c);
    if (names.empty()) {
      names = cells;
      continue;
    }
    rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) rows.back()[names.at(i)] = cells[i];
  }
  return rows;
}

// The rows of results.csv in a study folder, without the columns of times. The other columns depend only on settings,
// code and data.
inline std::vector<std::map<std::string, std::string>> timeless_rows(const std::filesystem::path& folder) {
  auto rows = rows_of(slurp(folder / "results.csv"));
  for (auto& row : rows) row.erase("seconds"), row.erase("images_per_second");
  return rows;
}

inline std::string program(const std::string& name) { return test::binary_dir() + "/bin/" + name; }

// Runs `command` in `folder`.
inline Finished run(const std::filesystem::path& folder, const std::string& command) {
  const std::string shell = "cd '" + folder.string() + "' && { " + command + " ; } >.stdout 2>.stderr </dev/null";
  const int raw = std::system(shell.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw), slurp(folder / ".stdout"),
          slurp(folder / ".stderr")};
}

}  // namespace plumb::test
