// Runs a program as a user would: a shell command, its exit status and both of its streams.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace plumb::test {

struct Finished {
  int status;  // exit status; 128 + signal if it was killed
  std::string out, err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string program(const std::string& name) { return std::string(PLUMB_BINARY_DIR) + "/bin/" + name; }

// `command` runs in `folder`.
inline Finished run(const std::filesystem::path& folder, const std::string& command) {
  const std::string shell = "cd '" + folder.string() + "' && { " + command + " ; } >.stdout 2>.stderr </dev/null";
  const int raw = std::system(shell.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw), slurp(folder / ".stdout"), slurp(folder / ".stderr")};
}

}  // namespace plumb::test
