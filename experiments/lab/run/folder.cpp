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

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* lock_name = ".lock";
// What every experiment may write; what an experiment writes besides, its run.json names. run.json itself goes last: while a run's files are being
// deleted, what is left still shows that it is a run.
constexpr const char* run_files[] = {"profile.json", "profile.txt", "report.html",     "metrics.jsonl", "results.csv",
                                     "results.md",   "claims.csv",  "comparisons.csv", "ledger.jsonl"};
constexpr const char *figures_name = "figures", *figures_list = ".figures", *tensorboard_name = "tensorboard";
constexpr const char* run_folders[] = {"weights", "checkpoints", figures_name, tensorboard_name};

bool is_leftover(const fs::path& path) { return path.filename() == lock_name || is_temporary_file(path); }

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(*it);
  check(!error, "cannot read {}: {}", folder.string(), error.message());
  return entries;
}

// The names of the figures that a run has written there.
std::vector<std::string> figures_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::ifstream list(folder / figures_list);
  for (std::string line; std::getline(list, line);)
    if (line.find('/') == line.npos && (line.ends_with(".svg") || line.ends_with(".csv"))) names.push_back(line);
  return names;
}

// Appends what a run has written into its folder `name`, at `within`; that folder itself where it holds nothing else.
bool add_files_within(std::vector<fs::path>& files, const fs::path& within, const std::string& name) {
  const std::vector<std::string> figures = name == figures_name ? figures_in(within) : std::vector<std::string>();
  const auto is_ours = [&](const fs::path& file) {
    const std::string text = file.filename().string();
    return is_temporary_file(file) || (name == figures_name && (text == figures_list || std::ranges::find(figures, text) != figures.end())) ||
           (name == tensorboard_name && text.starts_with("events.out.tfevents.")) ||
           ((name == "weights" || name == "checkpoints") && text.ends_with(".safetensors"));
  };
  bool all = true;
  for (const fs::directory_entry& e : entries_of(within)) {
    const bool is_folder = e.symlink_status().type() == fs::file_type::directory;
    if (is_folder && name == tensorboard_name)  // a folder an arm
      all = add_files_within(files, e.path(), name) && all;
    else if (!is_folder && is_ours(e.path()))
      files.push_back(e.path());
    else
      all = false;
  }
  if (all) files.push_back(within);
  return all;
}

// The files and folders that a run has written, the folders' contents first.
std::vector<fs::path> files_of_run(const fs::path& folder, const RunDescription& run) {
  std::vector<std::string> names(std::begin(run_files), std::end(run_files));
  names.insert(names.end(), run.facts.outputs.begin(), run.facts.outputs.end());
  std::vector<fs::path> files;
  for (const std::string& name : names)
    if (const fs::file_status status = fs::symlink_status(folder / name); fs::exists(status) && !fs::is_directory(status))
      files.push_back(folder / name);
  for (const char* name : run_folders)
    if (fs::symlink_status(folder / name).type() == fs::file_type::directory) add_files_within(files, folder / name, name);
  files.push_back(folder / "run.json");
  return files;
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

RunDescription describe(const Cli& cli, const RunFacts& facts) {
  std::error_code none;
  RunDescription run{.experiment = cli.experiment(),
                     .version = version(),
                     .commit = commit(),
                     .build = build(),
                     .program = fs::read_symlink("/proc/self/exe", none).string(),
                     .facts = facts,
                     .command_line = cli.command_line(),
                     .started = formatted("%Y-%m-%dT%H:%M:%SZ", start_time().seconds, true),
                     .settings = cli.settings()};
  const Json fixed = Json::parse(cli.fixed_settings());
  for (const auto& [key, value] : fixed.items()) run.fixed.push_back(key);
  return run;
}

RunDescription described(const fs::path& folder) {
  const fs::path file = folder / "run.json";
  return RunDescription::parse(read_file(file), file.string());
}

void check_resumable(const Cli& cli, const char* option, const fs::path& file, const RunDescription& run) {
  usage_check(run.experiment == cli.experiment(), "{}: {} is of {}, not of {}; choose another --out", option, file.string(), run.experiment,
              cli.experiment());
  const std::string difference = cli.difference(run.settings);
  usage_check(difference.empty(), "{}: {} has other settings: {}; use the same or another --out", option, file.string(), difference);
  const Json former = Json::parse(run.settings), ours = Json::parse(cli.settings());
  const auto name = [](const Json& settings) {
    return settings.value("shard", "").empty() ? "of all runs" : "of --shard " + settings["shard"].get<std::string>();
  };
  usage_check(name(former) == name(ours), "{}: {} is {}, this call {}; give the same --shard", option, file.string(), name(former), name(ours));
}

void check_is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  usage_check(!fs::exists(status) || fs::is_directory(status), "--out {} is not a folder", path.string());
}

// Refuses a folder that holds anything but what the options are about.
void check_usable(const fs::path& path, const Cli& cli, const RunOptions& options) {
  const std::string name = path.string();
  std::vector<fs::path> there;
  for (const fs::directory_entry& entry : entries_of(path))
    if (!is_leftover(entry.path())) there.push_back(entry.path());
  const bool reads = options.rebuild || !options.replay.empty();
  usage_check(!there.empty() || !reads, "{} is empty: expected the folder of a run", name);
  if (there.empty()) return;
  usage_check(reads || options.resume || options.overwrite, "{} is not empty; --resume finishes the run it holds, --overwrite deletes it", name);
  usage_check(std::ranges::find(there, path / "run.json") != there.end(),
              "{} is not empty and holds no run.json, so it is not a run's folder; choose another --out", name);
  const RunDescription run = described(path);
  if (reads || options.resume) return check_resumable(cli, options.rebuild ? "--rebuild" : reads ? "--replay" : "--resume", path / "run.json", run);
  const std::vector<fs::path> ours = files_of_run(path, run);
  for (const fs::path& entry : there)
    usage_check(std::ranges::find(ours, entry) != ours.end(), "--overwrite: {} also holds {}, which no run wrote; move it or choose another --out",
                name, entry.filename().string());
}

std::optional<LinearModel> linear_from(const Json& data) {
  if (!data.contains("linear_model")) return std::nullopt;
  const Json& linear = data["linear_model"];
  return LinearModel{.train_loss = linear.at("train_loss"), .val_loss = linear.at("val_loss"), .val_accuracy = linear.at("val_accuracy")};
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

std::string RunDescription::text() const {
  const ImageSet& images = facts.data.images;
  Json run{{"experiment", experiment},
           {"version", version},
           {"commit", commit},
           {"build", build},
           {"code", facts.code},
           {"program", program},
           {"machine", {{"device", facts.machine.device}, {"threads", facts.machine.threads}}},
           {"command_line", command_line},
           {"data", facts.data.text},
           {"data_facts",
            {{"name", facts.data.name},
             {"validation_is", facts.data.validation_is},
             {"hash", facts.data.hash},
             {"image", {images.channels, images.height, images.width}},
             {"classes", images.classes}}},
           {"started", started},
           {"outputs", facts.outputs},
           {"settings", Json::parse(settings)},
           {"fixed", fixed}};
  if (const auto& linear = facts.data.linear)
    run["data_facts"]["linear_model"] = {{"train_loss", linear->train_loss}, {"val_loss", linear->val_loss}, {"val_accuracy", linear->val_accuracy}};
  if (!accepted_code.empty()) run["accepted_code"] = accepted_code;
  return run.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunDescription RunDescription::parse(const std::string& text, const std::string& file) {
  const Json run = Json::parse(text, nullptr, false);
  const bool ours =
      run.is_object() && run.contains("experiment") && run["experiment"].is_string() && run.contains("settings") && run["settings"].is_object();
  usage_check(ours, "{} does not describe a run; choose another --out", file);
  usage_check(run.contains("code"), "{} was written by an older version of this program, which kept no ledger; choose another --out", file);
  try {
    const Json &machine = run.at("machine"), &data = run.at("data_facts"), &image = data.at("image");
    return {.experiment = run.at("experiment"),
            .version = run.at("version"),
            .commit = run.at("commit"),
            .build = run.at("build"),
            .program = run.at("program"),
            .facts = {.machine = {.device = machine.at("device"), .threads = machine.at("threads")},
                      .data = {.name = data.at("name"),
                               .text = run.at("data"),
                               .validation_is = data.at("validation_is"),
                               .hash = data.at("hash"),
                               .images = {.channels = image.at(0), .height = image.at(1), .width = image.at(2), .classes = data.at("classes")},
                               .linear = linear_from(data)},
                      .code = run.at("code"),
                      .outputs = run.at("outputs")},
            .command_line = run.at("command_line"),
            .started = run.at("started"),
            .settings = run.at("settings").dump(),
            .fixed = run.at("fixed"),
            .accepted_code = run.value("accepted_code", std::vector<std::string>())};
  } catch (const Json::exception& e) {
    throw UsageError(fmt::format("{} does not describe a run ({}); choose another --out", file, e.what()));
  }
}

RunFolder::RunFolder(const Cli& cli, const RunOptions& options, const RunFacts& facts) {
  create(cli, options);
  check_usable(path_, cli, options);
  lock();
  try {
    check_usable(path_, cli, options);  // again: it may have changed until the lock was ours
    const bool resumes = options.resume && fs::exists(path_ / "run.json");
    std::vector<fs::path> written{path_};
    for (const char* name : run_folders) written.push_back(path_ / name);
    if (fs::is_directory(path_ / tensorboard_name))
      for (const fs::directory_entry& arm : entries_of(path_ / tensorboard_name)) written.push_back(arm.path());
    for (const fs::path& folder : written)
      if (fs::is_directory(folder))
        for (const fs::directory_entry& entry : entries_of(folder))
          if (is_temporary_file(entry.path())) remove_file(entry.path());
    if (options.overwrite && fs::exists(path_ / "run.json"))
      for (const fs::path& file : files_of_run(path_, described(path_))) remove_file(file);
    description_ = describe(cli, facts);
    if (resumes) {  // what began the run stays
      const RunDescription former = described(path_);
      description_.started = former.started, description_.accepted_code = former.accepted_code;
      if (former.facts.code == facts.code && former.settings == description_.settings) description_ = former;
    }
    if (!options.accept_code.empty() && std::ranges::find(description_.accepted_code, options.accept_code) == description_.accepted_code.end())
      description_.accepted_code.push_back(options.accept_code);
    write_file_atomically(path_ / "run.json", description_.text());
  } catch (...) {
    unlock();
    throw;
  }
}

RunFolder::RunFolder(const Cli& cli, const RunOptions& options) : path_(options.out) {
  check_is_folder(path_);
  usage_check(fs::exists(path_), "--out {}: no such folder", path_.string());
  check_usable(path_, cli, options);
  lock();
  try {
    description_ = described(path_);
  } catch (...) {
    unlock();
    throw;
  }
}

RunFolder::~RunFolder() { unlock(); }

void write_figures(const fs::path& run, const std::vector<Figure>& figures) {
  const fs::path folder = run / figures_name;
  const std::vector<std::string> former = figures_in(folder);
  if (figures.empty() && former.empty()) return;
  fs::create_directories(folder);
  const auto list = [&](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + "\n";
    write_file_atomically(folder / figures_list, text);
  };
  std::set<std::string> written;
  for (const Figure& f : figures) written.insert({f.id + ".svg", f.id + ".csv"});
  std::set<std::string> all = written;
  all.insert(former.begin(), former.end());
  list(all);  // before what it lists, so that nothing lies there unlisted
  for (const Figure& f : figures) {
    write_file_atomically(folder / (f.id + ".svg"), standalone(f.svg));
    write_file_atomically(folder / (f.id + ".csv"), f.csv);
  }
  for (const std::string& name : former)
    if (!written.contains(name)) fs::remove(folder / name);
  list(written);
}

bool RunFolder::writes(const std::string& name) {
  return name == "run.json" || std::ranges::find(run_files, name) != std::end(run_files) ||
         std::ranges::find(run_folders, name) != std::end(run_folders);
}

void RunFolder::discard() {
  std::error_code none;
  fs::remove(path_ / "run.json", none);
  unlock();
  if (fs::is_empty(path_, none)) fs::remove(path_, none);
}

void RunFolder::create(const Cli& cli, const RunOptions& options) {
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
