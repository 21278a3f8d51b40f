#include "experiments/lab/study/folder_programs.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/run/folder.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What the three programs take.
struct Words {
  std::vector<std::string> folders;
  std::string out, markdown, keep, accept_code;
};

void declare_accept_code(Cli& cli, Words& words) {
  cli.option("--accept-code", &words.accept_code, "Put runs that other code has computed into the tables, too").value_name("HASH");
}

// A ledger that was kept for documents: NAME.jsonl, with NAME.json beside it.
bool is_kept(const fs::path& path) { return path.extension() == ".jsonl"; }
fs::path description_of(const fs::path& ledger) { return fs::path(ledger).replace_extension(".json"); }

RunDescription describe(const fs::path& folder) {
  if (is_kept(folder)) {
    const fs::path file = description_of(folder);
    usage_check(fs::exists(folder), "{}: no such file", folder.string());
    usage_check(fs::exists(file), "{} has no {} beside it, which says what was run; report --keep writes both", folder.string(), file.string());
    return RunDescription::parse(read_file(file), file.string());
  }
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
enum class Tables { printed, not_printed };
int run_program(const fs::path& folder, const RunDescription& run, const std::vector<std::string>& more, Tables tables = Tables::printed) {
  std::vector<std::string> words{program_of(run).string(), "--config", (folder / "run.json").string(), "--out", folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  check(child >= 0, "cannot start {}: {}", words[0], std::strerror(errno));
  if (child == 0) {
    if (const int nowhere = tables == Tables::printed ? -1 : ::open("/dev/null", O_WRONLY); nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
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
  const auto best_lr = [](const Json& settings) { return settings.value("best_lr", false); };
  if (best_lr(ours) != best_lr(theirs)) differ("best_lr", best_lr(ours) ? "on" : "off", best_lr(theirs) ? "on" : "off");
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

// The folder's ledger, without what each step logged and what figures are made of, and its description, as FOLDER/NAME.jsonl and .json.
void keep(const fs::path& folder, RunDescription run, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  check(!error, "cannot create {}: {}", to.string(), error.message());
  const fs::path name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  const fs::path ledger = to / (name.string() + ".jsonl");
  const Ledger all(folder / Ledger::file_name);
  std::vector<LedgerEntry> entries;
  for (const LedgerEntry& e : all.entries()) {
    if (all.find(e.key, e.code) != &e) continue;
    entries.push_back(e);
    entries.back().record.metrics.clear(), entries.back().record.attachments.clear();
  }
  run.program = fs::path(run.program).filename().string();
  fs::remove(ledger, error);
  Ledger(ledger).append_all(std::move(entries));
  write_file_atomically(description_of(ledger), run.text());
}

// Where and how it was run, for a document.
std::string provenance(const RunDescription& run, const Ledger& ledger) {
  double seconds = 0;
  for (const LedgerEntry& e : ledger.entries()) seconds += e.record.seconds;
  return fmt::format("    {}\n\n{}. {} runs, {:.1f} hours of steps together, on {}; {} ({}), begun {}.\n\n", run.command_line, run.facts.data.text,
                     ledger.entries().size(), seconds / 3600, run.facts.machine.device, run.version, run.commit, run.started.substr(0, 10));
}

// The tables of a kept ledger, in Markdown: its program makes them in a folder that is gone afterwards.
std::string markdown_of(const fs::path& ledger, const RunDescription& run, const std::vector<std::string>& words) {
  std::string pattern = (fs::temp_directory_path() / "plumb-report-XXXXXX").string();
  check(::mkdtemp(pattern.data()), "cannot create a folder like {}: {}", pattern, std::strerror(errno));
  const fs::path folder = pattern;
  const auto gone = [&](int*) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  int nothing = 0;
  const std::unique_ptr<int, decltype(gone)> afterwards(&nothing, gone);
  fs::copy_file(ledger, folder / Ledger::file_name);
  fs::copy_file(description_of(ledger), folder / "run.json");
  check(run_program(folder, run, words, Tables::not_printed) == 0, "{}: no tables came of it", ledger.string());
  const fs::path found = fs::path(ledger).replace_extension(".md");
  return fmt::format("## {}\n\n{}{}{}", ledger.stem().string(), provenance(run, Ledger(ledger)), read_file(folder / "results.md"),
                     fs::exists(found) ? "\n" + read_file(found) : "");
}

std::vector<std::string> rebuild_words(const Words& words) {
  std::vector<std::string> all{"--rebuild"};
  if (!words.accept_code.empty()) all.insert(all.end(), {"--accept-code", words.accept_code});
  return all;
}

}  // namespace

int merge(int argc, const char* const* argv) {
  return exit_status([&] {
    Words words;
    Cli cli("merge",
            "Puts the folders of one study's shards together: their runs in one ledger, with tables and report. The folders must be of the same "
            "experiment, with the same settings (axes may differ) and data; they stay as they are. A run that several have is taken once; weights "
            "and checkpoints stay where they are.");
    cli.words("DIR..", &words.folders);
    cli.option("--out", &words.out, "The folder to make: new or empty").value_name("DIR");
    declare_accept_code(cli, words);
    cli.example("runs/shard-1 runs/shard-2 --out runs/whole");
    if (cli.parse(argc, argv) == Action::done) return 0;
    usage_check(!words.folders.empty() && !words.out.empty(), "expected {} DIR.. --out DIR; see --help", cli.program());
    const fs::path out = words.out;
    usage_check(!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out)), "--out {} is not empty; choose a new folder", out.string());

    std::optional<RunDescription> merged;
    std::vector<LedgerEntry> entries;
    std::map<std::string, std::pair<std::size_t, fs::path>> seen;  // by key and code: which entry, and who has it
    std::int64_t twice = 0;
    for (const fs::path folder : words.folders) {
      const RunDescription run = describe(folder);
      if (!merged)
        merged = run;
      else
        check_same(words.folders.front(), *merged, folder, run);
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
    merged->command_line = cli.command_line();
    std::error_code error;
    fs::create_directories(out, error);
    check(!error, "cannot create {}: {}", out.string(), error.message());
    write_file_atomically(out / "run.json", merged->text());
    Ledger ledger(out / Ledger::file_name);
    ledger.append_all(std::move(entries));
    return run_program(out, *merged, rebuild_words(words));
  });
}

int report(int argc, const char* const* argv) {
  return exit_status([&] {
    Words words;
    Cli cli("report",
            "Writes tables and reports of runs anew, from their ledgers. A document is made of ledgers that were kept: each NAME.jsonl becomes a "
            "section, with "
            "NAME.md, what was found out about it, at its end; a FILE.md stands where it is named.");
    cli.words("DIR..", &words.folders);
    cli.option("--markdown", &words.markdown, "Write the tables as Markdown, for documents, too").value_name("FILE");
    cli.option("--keep", &words.keep, "Copy ledger and settings of each DIR there as NAME.jsonl and NAME.json, without what each step logged")
        .value_name("FOLDER");
    declare_accept_code(cli, words);
    cli.example("runs/whole --markdown table.md");
    cli.example("runs/layerscale_init --keep docs/results");
    cli.example("docs/results/about.md docs/results/*.jsonl --markdown docs/results.md");
    if (cli.parse(argc, argv) == Action::done) return 0;
    usage_check(!words.folders.empty(), "expected {} DIR.. [--markdown FILE]; see --help", cli.program());
    std::vector<std::optional<RunDescription>> runs;  // nothing: text
    for (const std::string& folder : words.folders) {
      const bool text = fs::path(folder).extension() == ".md";
      usage_check(!(text || is_kept(folder)) || !words.markdown.empty(), "{} is for a document: give --markdown FILE", folder);
      usage_check(!(text || is_kept(folder)) || words.keep.empty(), "--keep is about folders of runs, got {}", folder);
      runs.push_back(text ? std::nullopt : std::optional(describe(folder)));
    }
    std::string markdown;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const fs::path folder = words.folders[i];
      if (i > 0) markdown += "\n";
      if (!runs[i]) {
        markdown += read_file(folder);
      } else if (is_kept(folder)) {
        markdown += markdown_of(folder, *runs[i], rebuild_words(words));
      } else {
        if (const int status = run_program(folder, *runs[i], rebuild_words(words)); status != 0) return status;
        if (!words.keep.empty()) keep(folder, *runs[i], words.keep);
        if (runs.size() > 1) markdown += fmt::format("## {}\n\n", folder.string());
        markdown += read_file(folder / "results.md");
      }
    }
    if (!words.markdown.empty()) write_file_atomically(words.markdown, markdown);
    return 0;
  });
}

int replay(int argc, const char* const* argv) {
  return exit_status([&] {
    std::vector<std::string> words;
    Cli cli(
        "replay",
        "Repeats the end of a run that diverged, in its own number format and in f64, and says which op and module went bad and whether the cause "
        "is numerical (f64 survives) or dynamical. RUN is as --dry-run prints it.");
    cli.words("DIR RUN", &words);
    cli.example("runs/sweep 'pre depth 48 lr 0.001 seed 0'");
    if (cli.parse(argc, argv) == Action::done) return 0;
    usage_check(words.size() == 2, "expected {} DIR 'RUN', got {} word{}; see --help", cli.program(), words.size(), words.size() == 1 ? "" : "s");
    return run_program(words[0], describe(words[0]), {"--replay", words[1]});
  });
}

}  // namespace plumb::lab
