#include "experiments/common/folders.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/common/cli.h"
#include "experiments/common/ledger.h"
#include "experiments/common/run_folder.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::string> options;
};

// "DIR.. --out DIR". Prints the help and returns nothing where that is asked for.
std::optional<Words> split(int argc, const char* const* argv, const std::string& help, const std::vector<std::string>& known) {
  Words words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      write_result(help);
      return std::nullopt;
    }
    if (!word.starts_with("--")) {
      words.plain.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    usage_check(std::ranges::find(known, name) != known.end(), "unknown option {}; --help lists them", name);
    usage_check(!words.options.contains(name), "{} is given twice", name);
    usage_check(equals != std::string::npos || i + 1 < argc, "{} expects a value", name);
    words.options[name] = equals != std::string::npos ? word.substr(equals + 1) : argv[++i];
  }
  return words;
}

RunDescription describe(const fs::path& folder) {
  usage_check(fs::is_directory(folder), "{}: no such folder", folder.string());
  usage_check(fs::exists(folder / "run.json"), "{} holds no run.json, so it is not a run's folder", folder.string());
  return RunDescription::parse(read_file(folder / "run.json"), (folder / "run.json").string());
}

// The one beside this program, or else the one that wrote the folder.
fs::path program_of(const RunDescription& run) {
  std::error_code none;
  const fs::path beside = fs::read_symlink("/proc/self/exe", none).parent_path() / fs::path(run.program).filename();
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  check(fs::path(run.program).is_absolute() && ::access(run.program.c_str(), X_OK) == 0, "{} was written by {}, which is neither there nor at {}",
        run.experiment, run.program, beside.string());
  return run.program;
}

// Runs the program of a folder about it; returns its exit status.
int run_program(const fs::path& folder, const RunDescription& run, const std::vector<std::string>& more) {
  std::vector<std::string> words{program_of(run).string(), "--config", (folder / "run.json").string(), "--out", folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  check(child >= 0, "cannot start {}: {}", words[0], std::strerror(errno));
  if (child == 0) {
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(!WIFEXITED(status) || WEXITSTATUS(status) != 127, "cannot run {}", words[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The settings that decide results, of those that both have; names the first that differs.
void check_same(const fs::path& first, const RunDescription& a, const fs::path& second, const RunDescription& b) {
  const auto differ = [&](const std::string& what, const std::string& there, const std::string& here) {
    throw UsageError(fmt::format("{} and {} do not go together: {} is {} there and {} here", first.string(), second.string(), what, there, here));
  };
  if (a.experiment != b.experiment) differ("the experiment", a.experiment, b.experiment);
  if (a.facts.data.hash != b.facts.data.hash) differ("the data", a.facts.data.text, b.facts.data.text + " (other images or labels)");
  const Json ours = Json::parse(a.settings), theirs = Json::parse(b.settings);
  if (a.fixed != b.fixed) differ("the list of settings", fmt::format("{}", fmt::join(a.fixed, ", ")), fmt::format("{}", fmt::join(b.fixed, ", ")));
  for (const std::string& key : a.fixed)
    if (ours.at(key) != theirs.at(key)) differ(key, ours.at(key).dump(), theirs.at(key).dump());
}

// Axes of both: values of the first, then those that only the second has.
std::string united(const RunDescription& a, const RunDescription& b) {
  Json settings = Json::parse(a.settings);
  const Json other = Json::parse(b.settings);
  for (auto& [key, value] : settings.items())
    if (value.is_array() && std::ranges::find(a.fixed, key) == a.fixed.end())
      for (const Json& item : other.at(key))
        if (std::ranges::find(value, item) == value.end()) value.push_back(item);
  settings["shard"] = "";
  return settings.dump();
}

// The record without its times.
std::string timeless(Record record) {
  record.seconds = 0;
  std::erase_if(record.values, [](const auto& v) { return v.first == "images_per_second"; });
  return to_json(record);
}

std::vector<std::string> rebuild_words(const Words& words) {
  std::vector<std::string> all{"--rebuild"};
  if (words.options.contains("--accept-code")) all.insert(all.end(), {"--accept-code", words.options.at("--accept-code")});
  return all;
}

constexpr const char* merge_help =
    "Puts the folders of one study's shards together: their runs in one ledger, with tables and report.\n"
    "Usage: merge DIR.. --out DIR [--accept-code HASH]\n\n"
    "The folders must be of the same experiment, with the same settings (axes may differ) and data; they stay as they are. --out is a new or\n"
    "empty folder. A run that several folders have is taken once; weights and checkpoints stay where they are.\n\n"
    "  --accept-code HASH  put runs that other code has computed into the tables, too\n";
constexpr const char* report_help =
    "Writes tables and reports of runs anew, from their ledgers.\n"
    "Usage: report DIR.. [--markdown FILE] [--accept-code HASH]\n\n"
    "  --markdown FILE     the tables as Markdown, for documents\n"
    "  --accept-code HASH  put runs that other code has computed into the tables, too\n";
constexpr const char* replay_help =
    "Repeats the end of a run that diverged, in its own number format and in f64, and says which op and module went bad and whether the cause is\n"
    "numerical (f64 survives) or dynamical.\n"
    "Usage: replay DIR 'RUN'\n\n"
    "RUN is as --dry-run prints it, such as 'pre depth 48 lr 0.001 seed 0'.\n";

}  // namespace

int merge(int argc, const char* const* argv) {
  return exit_status([&] {
    const auto words = split(argc, argv, merge_help, {"--out", "--accept-code"});
    if (!words) return 0;
    usage_check(words->plain.size() >= 1 && words->options.contains("--out"), "expected merge DIR.. --out DIR; see --help");
    const fs::path out = words->options.at("--out");
    usage_check(!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out)), "--out {} is not empty; choose a new folder", out.string());

    std::optional<RunDescription> merged;
    std::vector<LedgerEntry> entries;
    std::map<std::string, std::pair<std::size_t, fs::path>> seen;  // by key and code: which entry, and who has it
    std::int64_t twice = 0;
    for (const std::string& word : words->plain) {
      const fs::path folder = word;
      const RunDescription run = describe(folder);
      if (!merged)
        merged = run;
      else
        check_same(words->plain.front(), *merged, folder, run);
      merged->settings = united(*merged, run);
      for (const std::string& code : run.accepted_code)
        if (std::ranges::find(merged->accepted_code, code) == merged->accepted_code.end()) merged->accepted_code.push_back(code);
      const Ledger ledger(folder / Ledger::file_name);
      for (const std::string& line : ledger.damaged()) note_error(fmt::format("damaged: {}; left out\n", line));
      for (const LedgerEntry& e : ledger.entries()) {
        if (ledger.find(e.key, e.code) != &e) continue;  // a later line counts
        const auto [former, is_new] = seen.try_emplace(e.key + e.code, entries.size(), folder);
        if (is_new) {
          entries.push_back(e);
          continue;
        }
        LedgerEntry& other = entries[former->second.first];
        if (is_finished(e.record.status) && is_finished(other.record.status)) {
          usage_check(timeless(other.record) == timeless(e.record), "{} and {} have different results of {}{}", former->second.second.string(),
                      folder.string(), e.record.point.label(),
                      e.machine == other.machine ? "" : fmt::format(", computed on different machines: {}; {}", other.machine, e.machine));
          ++twice;
        } else if (is_finished(e.record.status)) {
          other = e;
        }
      }
    }
    if (twice > 0) note_error(fmt::format("{} run{} in more than one folder, with the same results\n", twice, twice == 1 ? "" : "s"));
    merged->command_line = "merge";
    for (int i = 1; i < argc; ++i) merged->command_line += std::string(" ") + argv[i];
    std::error_code error;
    fs::create_directories(out, error);
    check(!error, "cannot create {}: {}", out.string(), error.message());
    write_file_atomically(out / "run.json", merged->text());
    Ledger ledger(out / Ledger::file_name);
    ledger.append_all(std::move(entries));
    return run_program(out, *merged, rebuild_words(*words));
  });
}

int report(int argc, const char* const* argv) {
  return exit_status([&] {
    const auto words = split(argc, argv, report_help, {"--markdown", "--accept-code"});
    if (!words) return 0;
    usage_check(!words->plain.empty(), "expected report DIR.. [--markdown FILE]; see --help");
    std::vector<RunDescription> runs;
    for (const std::string& folder : words->plain) runs.push_back(describe(folder));
    std::string markdown;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const fs::path folder = words->plain[i];
      if (const int status = run_program(folder, runs[i], rebuild_words(*words)); status != 0) return status;
      if (!words->options.contains("--markdown")) continue;
      if (runs.size() > 1) markdown += fmt::format("{}## {}\n\n", i > 0 ? "\n" : "", folder.string());
      markdown += read_file(folder / "results.md");
    }
    if (words->options.contains("--markdown")) write_file_atomically(words->options.at("--markdown"), markdown);
    return 0;
  });
}

int replay(int argc, const char* const* argv) {
  return exit_status([&] {
    const auto words = split(argc, argv, replay_help, {});
    if (!words) return 0;
    usage_check(words->plain.size() == 2, "expected replay DIR 'RUN'; see --help");
    return run_program(words->plain[0], describe(words->plain[0]), {"--replay", words->plain[1]});
  });
}

}  // namespace plumb::lab
