// Calls a program's main function within the test, with the same results as a shell.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/scope.h"
#include "tests/support/temporary_folder.h"

namespace plumb::test {

using Main = std::function<int(int, const char* const*)>;
using Words = std::vector<std::string>;

struct Ended {
  int status;
  std::string out, err;
};

// Runs `main` in a folder, which is the working directory of this process during the call. argv[0] is "program".
inline Ended call(const std::filesystem::path& folder, const Main& main, const Words& arguments,
                  const std::string& program = "program") {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  std::fflush(nullptr);
  const int kept[] = {::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)};
  for (int i = 0; i < 2; ++i) {
    const int sink = ::open(i == 0 ? ".out" : ".err", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(sink, i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    ::close(sink);
  }
  std::vector<const char*> argv{program.c_str()};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  const int status = main(static_cast<int>(argv.size()), argv.data());
  std::fflush(nullptr);
  for (int i = 0; i < 2; ++i) {
    ::dup2(kept[i], i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    ::close(kept[i]);
  }
  const Ended ended{status, read_file(folder / ".out"), read_file(folder / ".err")};
  std::filesystem::current_path(before);
  return ended;
}

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace plumb::test
