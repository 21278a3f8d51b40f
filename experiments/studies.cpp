#include "experiments/studies.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/one_line.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/run/stored_run.h"
#include "experiments/programs.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

constexpr KnownStudy studies[] = {{"class_attention", class_attention},
                                  {"deep_mlp", deep_mlp},
                                  {"depth_limit", depth_limit},
                                  {"depth_stability", depth_stability},
                                  {"detr", detr},
                                  {"drop_key", drop_key},
                                  {"fixup_scalars", fixup_scalars},
                                  {"layerscale_init", layerscale_init},
                                  {"norm_placement", norm_placement},
                                  {"passport", passport},
                                  {"residual_ratio", residual_ratio},
                                  {"stability_map", stability_map},
                                  {"stochastic_depth", stochastic_depth},
                                  {"vit", vit}};

// The words of a message that tell how to call the program of a study.
std::string by_its_program(const fs::path& study, const std::vector<std::string>& more) {
  if (is_kept(study)) return "give its program with --program PROGRAM";
  std::vector<std::string> words = more;
  words.insert(words.end(), {"--out", study.string()});
  for (std::string& word : words) word = shell_word(word);
  return fmt::format("call its program, PROGRAM {}, or give it with --program PROGRAM", fmt::join(words, " "));
}

}  // namespace

std::span<const KnownStudy> known_studies() { return studies; }

void declare_program(Cli& cli, std::string& program) {
  cli.option("--program", &program,
             "The program of a study that is not part of Plumb, or that has gates of its own. By default only the "
             "studies of Plumb are shown, and the program that run.json names is never run")
      .path("PATH");
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

void check_known(const fs::path& study, const StudyDescription& run, const std::string& program,
                 const std::vector<std::string>& more) {
  usage_check(!program.empty() || std::ranges::find(studies, run.experiment, &KnownStudy::name) != std::end(studies),
              "{}: '{}' is not a study of Plumb; {}", study.string(), run.experiment, by_its_program(study, more));
}

int call_study(const fs::path& study, const fs::path& folder, const StudyDescription& run, const std::string& program,
               const std::vector<std::string>& more, Tables tables) {
  check_known(study, run, program, more);
  const auto known = std::ranges::find(studies, run.experiment, &KnownStudy::name);
  if (program.empty()) {
    const auto threads = std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
    check(threads == 1,
          "[study] expected a process with one thread, which a forked process repeats, got {} threads; call this "
          "function before the first computation, or give --program",
          threads);
  }
  std::vector<std::string> words{program.empty() ? run.experiment : program, "--config", (folder / "run.json").string(),
                                 "--out", folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  check(child >= 0, "cannot start a process for {}: {}", study.string(), std::strerror(errno));
  if (child == 0) {
    if (const int nowhere = tables == Tables::printed ? -1 : ::open("/dev/null", O_WRONLY); nowhere >= 0)
      ::dup2(nowhere, STDOUT_FILENO);
    if (program.empty()) {
      const int status = exit_status([&] { return known->run(static_cast<int>(words.size()), arguments.data()); });
      std::fflush(nullptr);
      ::_exit(status);
    }
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(program.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 127, "cannot run --program {}", program);
  const int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (const std::string wrote = fs::path(run.program).filename().string();
      ended != 0 && program.empty() && wrote != run.experiment)
    note_error(fmt::format("{} was written by a program named {}, which may have gates or options of its own: {}\n",
                           study.string(), wrote, by_its_program(study, more)));
  return ended;
}

}  // namespace plumb::lab
