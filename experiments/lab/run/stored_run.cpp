#include "experiments/lab/run/stored_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

// The path of the program that wrote a study: the path in run.json, or the same name in the folder of the calling
// program or in the current folder. Another program may have the same name, so the path in run.json comes first.
fs::path program_of(const StudyDescription& run) {
  std::error_code none;
  const fs::path name = fs::path(run.program).filename(),
                 beside = fs::read_symlink("/proc/self/exe", none).parent_path() / name,
                 here = fs::current_path(none) / name;
  for (const fs::path& path : {fs::path(run.program), beside, here})
    if (path.is_absolute() && fs::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0) return path;
  fail(fmt::format("the program of {} was found neither at {} nor at {} nor at {}; put it at one of these paths",
                   run.experiment, run.program, beside.string(), here.string()));
}

}  // namespace

bool is_kept(const fs::path& path) { return path.extension() == ".jsonl"; }
fs::path description_of(const fs::path& ledger) { return fs::path(ledger).replace_extension(".json"); }

StudyDescription described(const fs::path& folder) {
  if (is_kept(folder)) {
    const fs::path file = description_of(folder);
    usage_check(fs::exists(folder), "{}: no such file", folder.string());
    usage_check(fs::exists(file), "{} has no description {}; `report --keep` writes both files", folder.string(),
                file.string());
    return StudyDescription::parse(read_file(file), file.string());
  }
  usage_check(fs::is_directory(folder), "{}: no such folder", folder.string());
  usage_check(fs::exists(folder / "run.json"), "{} has no run.json, so it is not a study folder", folder.string());
  return StudyDescription::parse(read_file(folder / "run.json"), (folder / "run.json").string());
}

int run_program(const fs::path& folder, const StudyDescription& run, const std::vector<std::string>& more,
                Tables tables) {
  std::vector<std::string> words{program_of(run).string(), "--config", (folder / "run.json").string(), "--out",
                                 folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  check(child >= 0, "cannot start {}: {}", words[0], std::strerror(errno));
  if (child == 0) {
    if (const int nowhere = tables == Tables::printed ? -1 : ::open("/dev/null", O_WRONLY); nowhere >= 0)
      ::dup2(nowhere, STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(!WIFEXITED(status) || WEXITSTATUS(status) != 127, "cannot run {}", words[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void declare_accept_code(Cli& cli, std::string& accept_code) {
  cli.option("--accept-code", &accept_code, "Also show trials that were computed by other code with this hash")
      .value_name("HASH");
}

std::vector<std::string> rebuild_words(const std::string& accept_code) {
  std::vector<std::string> all{"--rebuild"};
  if (!accept_code.empty()) all.insert(all.end(), {"--accept-code", accept_code});
  return all;
}

}  // namespace plumb::lab
