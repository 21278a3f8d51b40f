#include "experiments/common/run_folder.h"

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
#include <nlohmann/json.hpp>
#include <optional>

#include "core/atomic_file.h"
#include "experiments/common/build_info.h"
#include "experiments/common/cli.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* lock_name = ".lock";
// run.json comes last: while a run's files are being deleted, what is left still shows that it is a run.
constexpr const char* run_files[] = {"profile.json", "profile.txt",   "report.html", "layers.csv",
                                     "passport.csv", "metrics.jsonl", "results.csv", "run.json"};

// "weights-7.safetensors": what a seed of an experiment may leave.
bool is_weights_file(const std::string& name) {
  constexpr std::string_view prefix = "weights-", suffix = ".safetensors";
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return false;
  return std::all_of(name.begin() + prefix.size(), name.end() - suffix.size(), [](char c) { return '0' <= c && c <= '9'; });
}

bool is_leftover(const fs::path& path) { return path.filename() == lock_name || is_temporary_file(path); }

bool is_run_file(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  const bool known = is_weights_file(name) || std::find(std::begin(run_files), std::end(run_files), name) != std::end(run_files);
  return (known || is_leftover(entry.path())) && !fs::is_directory(entry.symlink_status());
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(*it);
  check(!error, "cannot read {}: {}", folder.string(), error.message());
  return entries;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  check(!error, "cannot delete {}: {}", path.string(), error.message());
}

struct StartTime {
  std::time_t seconds;
  bool reproducible;  // set by SOURCE_DATE_EPOCH
};

StartTime start_time() {
  const char* text = std::getenv("SOURCE_DATE_EPOCH");
  if (!text || !*text) return {std::time(nullptr), false};
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  check(error == std::errc() && *end == '\0' && seconds >= 0, "SOURCE_DATE_EPOCH expects seconds since 1970, got '{}'", text);
  return {static_cast<std::time_t>(seconds), true};
}

std::string formatted(const char* format, std::time_t seconds, bool utc) {
  std::tm time{};
  utc ? ::gmtime_r(&seconds, &time) : ::localtime_r(&seconds, &time);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &time));
}

Json description(const Cli& cli, const Machine& machine, const std::string& data) {
  Json run;
  run["experiment"] = cli.experiment();
  run["version"] = version();
  run["commit"] = commit();
  run["build"] = build();
  run["machine"] = {{"device", machine.device}, {"cpu", cpu_model()}, {"threads", machine.threads}};
  run["command_line"] = cli.command_line();
  if (!data.empty()) run["data"] = data;
  run["started"] = formatted("%Y-%m-%dT%H:%M:%SZ", start_time().seconds, true);
  run["settings"] = Json::parse(cli.settings());
  return run;
}

// The run.json of a folder; UsageError where it is not one of ours.
Json read_description(const fs::path& file) {
  Json run = Json::parse(read_file(file), nullptr, false);
  const bool ours =
      run.is_object() && run.contains("experiment") && run["experiment"].is_string() && run.contains("settings") && run["settings"].is_object();
  usage_check(ours, "{} does not describe a run; choose another --out", file.string());
  return run;
}

void check_resumable(const Cli& cli, const fs::path& file, const Json& run) {
  const auto experiment = run["experiment"].get<std::string>();
  usage_check(experiment == cli.experiment(), "--resume: {} is of {}, not of {}; choose another --out", file.string(), experiment, cli.experiment());
  const std::string difference = cli.difference(run["settings"].dump());
  usage_check(difference.empty(), "--resume: {} has other settings: {}; use the same or another --out", file.string(), difference);
}

void check_is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  usage_check(!fs::exists(status) || fs::is_directory(status), "--out {} is not a folder", path.string());
}

// Refuses a folder that holds anything but what the options are about.
void check_usable(const fs::path& path, const Cli& cli, const RunOptions& options) {
  const std::string name = path.string();
  bool empty = true, described = false;
  std::string foreign;
  for (const fs::directory_entry& entry : entries_of(path)) {
    if (is_leftover(entry.path())) continue;
    empty = false;
    described |= entry.path().filename() == "run.json";
    if (!is_run_file(entry)) foreign = entry.path().filename().string();
  }
  if (empty) return;
  usage_check(options.resume || options.overwrite, "{} is not empty; --resume finishes the run it holds, --overwrite deletes it", name);
  usage_check(described, "{} is not empty and holds no run.json, so it is not a run's folder; choose another --out", name);
  const Json run = read_description(path / "run.json");
  if (options.resume) check_resumable(cli, path / "run.json", run);
  if (options.overwrite)
    usage_check(foreign.empty(), "--overwrite: {} also holds {}, which no run wrote; move it or choose another --out", name, foreign);
}

// A folder that did not exist before: runs/name, runs/name-2, ...
fs::path new_folder(const std::string& name) {
  std::error_code error;
  fs::create_directories("runs", error);
  for (int i = 1; !error; ++i) {
    fs::path path = fs::path("runs") / (i == 1 ? name : fmt::format("{}-{}", name, i));
    if (fs::create_directory(path, error)) return path;
  }
  fail(fmt::format("cannot create a folder under runs: {}; choose one with --out", error.message()));
}

}  // namespace

std::string cpu_model() {
  std::string text;
  try {
    text = read_file("/proc/cpuinfo");
  } catch (const Error&) {
  }
  const std::size_t field = text.find("model name"), colon = text.find(": ", field);
  if (field == std::string::npos || colon == std::string::npos) return "unknown CPU";
  return text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

RunFolder::RunFolder(const Cli& cli, const RunOptions& options, const Machine& machine, const std::string& data) {
  create(cli, options);
  check_usable(path_, cli, options);
  lock();
  try {
    check_usable(path_, cli, options);  // again: it may have changed until the lock was ours
    resumed_ = options.resume && fs::exists(path_ / "run.json");
    for (const fs::directory_entry& entry : entries_of(path_))
      if (is_temporary_file(entry.path())) remove_file(entry.path());
    if (options.overwrite) {
      for (const fs::directory_entry& entry : entries_of(path_))
        if (is_weights_file(entry.path().filename().string())) remove_file(entry.path());
      for (const char* file : run_files) remove_file(path_ / file);
    }
    if (!resumed_)
      write_file_atomically(path_ / "run.json", description(cli, machine, data).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (...) {
    unlock();
    throw;
  }
}

RunFolder::~RunFolder() { unlock(); }

void RunFolder::create(const Cli& cli, const RunOptions& options) {
  if (options.out.empty()) {
    const StartTime start = start_time();
    path_ = new_folder(cli.experiment() + "-" + formatted("%Y%m%d-%H%M%S", start.seconds, start.reproducible));
    return;
  }
  path_ = options.out;
  check_is_folder(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  check(!error, "cannot create {}: {}", options.out, error.message());
}

void RunFolder::check_beforehand(const Cli& cli, const RunOptions& options) {
  const fs::path path = options.out.empty() ? fs::path("runs") : fs::path(options.out);
  if (!options.out.empty()) check_is_folder(path);
  std::error_code error;
  fs::path there = fs::absolute(path).lexically_normal();
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  check(fs::is_directory(there, error), "cannot create {}: {} is not a folder", path.string(), there.string());
  check(::access(there.c_str(), W_OK | X_OK) == 0, "cannot write in {}: {}", there.string(), std::strerror(errno));
  if (!options.out.empty() && fs::exists(path, error)) check_usable(path, cli, options);
}

// The lock file goes away with the run. So a lock counts only while its file is still the one of that name.
void RunFolder::lock() {
  const fs::path file = path_ / lock_name;
  for (;;) {
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    check(lock_ >= 0, "cannot write in {}: {}", path_.string(), std::strerror(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::close(std::exchange(lock_, -1));
      check(reason != EWOULDBLOCK, "another process is writing {}; wait for it or choose another --out", path_.string());
      fail(fmt::format("cannot lock {}: {}", file.string(), std::strerror(reason)));
    }
    struct stat held {
    }, named{};
    if (::fstat(lock_, &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) return;
    ::close(std::exchange(lock_, -1));
  }
}

void RunFolder::unlock() {
  if (lock_ < 0) return;
  ::unlink((path_ / lock_name).c_str());
  ::close(std::exchange(lock_, -1));
}

}  // namespace plumb::lab
