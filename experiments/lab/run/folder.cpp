#include "experiments/lab/run/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/atomic_file.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/mode.h"
#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/stored_run.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct StartTime {
  std::time_t seconds;
  bool reproducible;  // true if SOURCE_DATE_EPOCH is set
};

StartTime start_time() {
  const char* text = std::getenv("SOURCE_DATE_EPOCH");
  if (!text || !*text) return {std::time(nullptr), false};
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  check(error == std::errc() && *end == '\0' && seconds >= 0, "SOURCE_DATE_EPOCH expects seconds since 1970, got '{}'",
        text);
  return {static_cast<std::time_t>(seconds), true};
}

std::string formatted(const char* format, std::time_t seconds, bool utc) {
  std::tm time{};
  utc ? ::gmtime_r(&seconds, &time) : ::localtime_r(&seconds, &time);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &time));
}

StudyDescription describe(const Cli& cli, const StudyFacts& facts) {
  StudyDescription run{.experiment = cli.experiment(),
                       .version = version(),
                       .commit = commit(),
                       .build = build(),
                       .program = cli.program(),
                       .facts = facts,
                       .command_line = cli.command_line(),
                       .started = formatted("%Y-%m-%dT%H:%M:%SZ", start_time().seconds, true),
                       .settings = {Json::parse(cli.settings())},
                       .claims = facts.claims,
                       .rule = rule_of_judging};
  run.facts.claims.clear();  // run.json has only the claims of the call that made the folder
  const Json fixed = Json::parse(cli.fixed_settings());
  for (const auto& [key, value] : fixed.items()) run.fixed.push_back(key);
  return run;
}

void check_resumable(const Cli& cli, const char* option, const fs::path& file, const StudyDescription& run) {
  usage_check(run.experiment == cli.experiment(), "{}: {} belongs to {}, not to {}; choose another --out", option,
              file.string(), run.experiment, cli.experiment());
  const std::string difference = cli.difference(run.settings.json.dump());
  usage_check(
      difference.empty(),
      "{}: {} has other settings: {}; leave the options out, which takes the settings from this file, or choose "
      "another --out",
      option, file.string(), difference);
  const auto trials = [](const Json& settings) {
    const std::string shard = settings.value("shard", "");
    return shard.empty() ? "all trials" : "the trials of --shard " + shard;
  };
  const std::string held = trials(run.settings.json), asked = trials(Json::parse(cli.settings()));
  usage_check(held == asked, "{}: {} holds {}, but this call asks for {}; give the same --shard", option, file.string(),
              held, asked);
}

void check_is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  usage_check(!fs::exists(status) || fs::is_directory(status), "--out {} is not a folder", path.string());
}

// Throws UsageError if the options do not permit the use of the folder (see the constructors of StudyFolder). `outputs`
// are the further files that the study declares.
void check_usable(const fs::path& path, const Cli& cli, Mode mode, const std::vector<std::string>& outputs) {
  const std::string name = path.string();
  check_own_files(path);
  std::vector<fs::path> there;
  for (const fs::directory_entry& entry : entries_of(path))
    if (!is_leftover(entry)) there.push_back(entry.path());
  const bool reads = mode == Mode::rebuild || mode == Mode::replay;
  usage_check(!there.empty() || !reads, "{} is empty; expected a study folder", name);
  if (there.empty()) return;
  usage_check(reads || mode == Mode::resume || mode == Mode::overwrite,
              "{} is not empty; --resume finishes the trials in it, --overwrite deletes them", name);
  usage_check(std::ranges::find(there, path / "run.json") != there.end(),
              "{} is not empty and has no run.json, so it is not a study folder; choose another --out{}", name,
              fs::exists(path / Ledger::file_name) ? ". Its ledger is not lost: start the same command with another "
                                                     "--out, end it, and copy its run.json into this folder"
                                                   : "");
  const StudyDescription run = described(path);
  if (mode != Mode::overwrite)
    return check_resumable(cli,
                           mode == Mode::rebuild ? "--rebuild"
                           : reads               ? "--replay"
                                                 : "--resume",
                           path / "run.json", run);
  const std::vector<fs::path> others = content_of(path, outputs).others;
  usage_check(
      others.empty(),
      "--overwrite: {} also holds {}, which is not a file of this study or of a trial in its ledger; move it or "
      "choose another --out",
      name, others.empty() ? "" : others.front().lexically_relative(path).string());
}

// Deletes the temporary files of killed processes.
void remove_temporary_files(const fs::path& path) {
  std::vector<fs::path> folders{path};
  for (const char* name : run_folders) folders.push_back(path / name);
  if (fs::is_directory(path / tensorboard_name))
    for (const fs::directory_entry& trial : entries_of(path / tensorboard_name)) folders.push_back(trial.path());
  for (const fs::path& folder : folders)
    if (fs::is_directory(folder))
      for (const fs::directory_entry& entry : entries_of(folder))
        if (is_leftover(entry) && is_temporary_file(entry.path())) remove_file(entry.path());
}

}  // namespace

fs::path new_run_folder(const std::string& name) {
  std::error_code error;
  fs::create_directories("runs", error);
  for (int i = 1; !error; ++i) {
    fs::path path = fs::path("runs") / (i == 1 ? name : fmt::format("{}-{}", name, i));
    if (fs::create_directory(path, error)) return path;
  }
  fail(fmt::format("cannot create a folder under runs: {}; choose one with --out", error.message()));
}

StudyFolder::StudyFolder(const Cli& cli, const StudyOptions& options, const StudyFacts& facts) {
  create(cli, options);
  check_usable(path_, cli, mode_without_dry_run(options), facts.outputs);
  lock();
  try {
    // The check is repeated, because the folder may have changed before it was locked.
    check_usable(path_, cli, mode_without_dry_run(options), facts.outputs);
    const bool resumes = mode_of(options) == Mode::resume && fs::exists(path_ / "run.json");
    remove_temporary_files(path_);
    if (mode_of(options) == Mode::overwrite)
      for (const fs::path& file : content_of(path_, facts.outputs).ours) remove_file(file);
    description_ = describe(cli, facts);
    if (resumes) {  // the start time, the accepted code and the claims stay the same
      const StudyDescription former = described(path_);
      description_.started = former.started, description_.accepted_code = former.accepted_code;
      description_.claims = former.claims, description_.rule = former.rule;
      if (former.facts.code == facts.code && former.settings == description_.settings) description_ = former;
    }
    if (!options.accept_code.empty() &&
        std::ranges::find(description_.accepted_code, options.accept_code) == description_.accepted_code.end())
      description_.accepted_code.push_back(options.accept_code);
    write_file_atomically(path_ / "run.json", description_.text());
  } catch (...) {
    unlock();
    throw;
  }
}

StudyFolder::StudyFolder(const Cli& cli, const StudyOptions& options) : path_(options.out) {
  check_is_folder(path_);
  usage_check(fs::exists(path_), "--out {}: no such folder", path_.string());
  check_usable(path_, cli, mode_without_dry_run(options), {});
  lock();
  try {
    description_ = described(path_);
  } catch (...) {
    unlock();
    throw;
  }
}

StudyFolder::~StudyFolder() { unlock(); }

void StudyFolder::discard() {
  std::error_code none;
  fs::remove(path_ / "run.json", none);
  unlock();
  if (fs::is_empty(path_, none)) fs::remove(path_, none);
}

void StudyFolder::create(const Cli& cli, const StudyOptions& options) {
  if (options.out.empty()) {
    const StartTime start = start_time();
    path_ = new_run_folder(cli.experiment() + "-" + formatted("%Y%m%d-%H%M%S", start.seconds, start.reproducible));
    return;
  }
  path_ = options.out;
  check_is_folder(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  check(!error, "cannot create {}: {}", options.out, error.message());
}

void StudyFolder::check_beforehand(const Cli& cli, const StudyOptions& options,
                                   const std::vector<std::string>& outputs) {
  const fs::path path = options.out.empty() ? fs::path("runs") : fs::path(options.out);
  if (!options.out.empty()) check_is_folder(path);
  std::error_code error;
  fs::path there = fs::absolute(path).lexically_normal();
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  check(fs::is_directory(there, error), "cannot create {}: {} is not a folder; choose another --out", path.string(),
        there.string());
  const bool writable = ::access(there.c_str(), W_OK | X_OK) == 0;
  check(writable, "cannot write in {}: {}", there.string(), std::strerror(errno));
  if (!options.out.empty() && fs::exists(path, error)) check_usable(path, cli, mode_without_dry_run(options), outputs);
}

// unlock() deletes the lock file, possibly between open() and flock() of another process. A lock is therefore valid
// only if the locked file is still the file of the name `.lock`.
void StudyFolder::lock() {
  const fs::path file = path_ / lock_name;
  for (;;) {
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    check(lock_ >= 0, "cannot write in {}: {}", path_.string(), std::strerror(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::close(std::exchange(lock_, -1));
      check(reason != EWOULDBLOCK, "another process is writing {}; wait for it or choose another --out",
            path_.string());
      fail(fmt::format("cannot lock {}: {}", file.string(), std::strerror(reason)));
    }
    struct stat held {
    }, named{};
    if (::fstat(lock_, &held) == 0 && ::lstat(file.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino)
      return;
    ::close(std::exchange(lock_, -1));
  }
}

void StudyFolder::unlock() {
  if (lock_ < 0) return;
  ::unlink((path_ / lock_name).c_str());
  ::close(std::exchange(lock_, -1));
}

}  // namespace plumb::lab
