// merge DIR.. --out DIR: merges the ledgers of folders with the same experiment, settings and data into a new folder. A
// trial that is in several folders is taken once. The call is refused if the results of such a trial differ in more
// than times.
#include "experiments/programs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/run/stored_run.h"
#include "experiments/lab/study/own_rates.h"
#include "experiments/studies.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Throws UsageError if the two studies differ in a setting that decides results. The error names the first difference.
void check_same(const fs::path& first, const StudyDescription& a, const fs::path& second, const StudyDescription& b) {
  const auto differ = [&](const std::string& what, const std::string& there, const std::string& here) {
    throw UsageError(fmt::format("{} and {} cannot be merged: {} is {} in the first and {} in the second",
                                 first.string(), second.string(), what, there, here));
  };
  if (a.experiment != b.experiment) differ("the experiment", a.experiment, b.experiment);
  if (a.facts.data.hash != b.facts.data.hash)
    differ("the data", a.facts.data.text, b.facts.data.text + " (with other contents)");
  const Json &ours = a.settings.json, &theirs = b.settings.json;
  if (a.fixed != b.fixed)
    differ("the list of settings", fmt::format("{}", fmt::join(a.fixed, ", ")),
           fmt::format("{}", fmt::join(b.fixed, ", ")));
  for (const std::string& key : a.fixed)
    if (ours.at(key) != theirs.at(key)) differ(key, ours.at(key).dump(), theirs.at(key).dump());
  const std::string rule = rule_for_rates(a), other_rule = rule_for_rates(b);
  if (rule != other_rule) differ("the source of the learning rates", rule, other_rule);
}

// The settings of `a`, with the further axis values that only `b` has.
JsonValue united(const StudyDescription& a, const StudyDescription& b) {
  JsonValue settings = a.settings;
  const Json& other = b.settings.json;
  for (auto& [key, value] : settings.json.items())
    if (value.is_array() && std::ranges::find(a.fixed, key) == a.fixed.end())
      for (const Json& item : other.value(key, Json::array()))
        if (std::ranges::find(value, item) == value.end()) value.push_back(item);
  settings.json["shard"] = "";
  return settings;
}

// Unites the claims of two folders. A claim that one folder does not have was not stated before all trials, so only the
// claims of both folders stay.
void unite_claims(StudyDescription& merged, const StudyDescription& other) {
  std::erase_if(merged.claims,
                [&](const std::string& claim) { return std::ranges::find(other.claims, claim) == other.claims.end(); });
  if (other.rule.empty()) merged.rule.clear();
}

// The record as JSON, without times.
std::string timeless(Record record) {
  record.seconds = 0;
  record.weights_saved.reset();
  std::erase_if(record.values, [](const auto& v) { return is_time(v.first); });
  return to_json(record);
}

}  // namespace
}  // namespace plumb::lab

int plumb::lab::merge(int argc, const char* const* argv) {
  return exit_status([&] {
    std::vector<std::string> folders;
    std::string to, accept_code, program;
    Cli cli(
        "merge",
        "Merges run folders of one study, such as its shards, into a new folder: all trials in one ledger, with tables "
        "and report. The folders must have the same experiment, settings (axes may differ) and data, and are not "
        "changed. A trial in several folders is taken once. Weights and checkpoints are not copied.");
    cli.words("DIR..", &folders);
    cli.option("--out", &to, "The folder to write: new or empty").path("DIR");
    declare_accept_code(cli, accept_code);
    declare_program(cli, program);
    cli.examples({"runs/shard-1 runs/shard-2 --out runs/whole"});
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    usage_check(!folders.empty() && !to.empty(), "expected {} DIR.. --out DIR; see --help", cli.program());
    const fs::path out = to;
    usage_check(!fs::exists(out) || (fs::is_directory(out) && fs::is_empty(out)),
                "--out {} is not empty; choose a new folder", out.string());

    std::optional<StudyDescription> merged;
    std::vector<LedgerEntry> entries;
    // For each key and code, the index of the entry and the folder of the entry.
    std::map<std::string, std::pair<std::size_t, fs::path>> seen;
    std::int64_t twice = 0;
    for (const fs::path folder : folders) {
      const StudyDescription run = described(folder);
      if (!merged)
        merged = run;
      else
        check_same(folders.front(), *merged, folder, run), unite_claims(*merged, run);
      merged->settings = united(*merged, run);
      for (const std::string& code : run.accepted_code)
        if (std::ranges::find(merged->accepted_code, code) == merged->accepted_code.end())
          merged->accepted_code.push_back(code);
      const Ledger ledger(folder / Ledger::file_name);
      for (const std::string& line : ledger.damaged())
        note_error(fmt::format("damaged ledger line left out: {}\n", line));
      for (const LedgerEntry& e : ledger.entries()) {
        if (ledger.find(e.key, e.code) != &e) continue;  // a later line of the ledger replaces this entry
        const auto [former, is_new] = seen.try_emplace(e.key + e.code, entries.size(), folder);
        if (is_new) {
          entries.push_back(e);
          entries.back().record.weights_saved.reset();  // the weights stay in `folder`
          continue;
        }
        LedgerEntry& other = entries[former->second.first];
        if (is_finished(e.record.status) && is_finished(other.record.status)) {
          usage_check(timeless(other.record) == timeless(e.record), "{} and {} have different results for {}{}",
                      former->second.second.string(), folder.string(), e.record.point.label(),
                      e.machine == other.machine
                          ? ""
                          : fmt::format(", computed on different machines ({}; {})", other.machine, e.machine));
          ++twice;
        } else if (is_finished(e.record.status)) {
          other = e;
          other.record.weights_saved.reset();
        }
      }
    }
    if (twice > 0)
      note_error(
          fmt::format("{} trial{} in more than one folder, with the same results\n", twice, twice == 1 ? "" : "s"));
    merged->command_line = cli.command_line();
    std::error_code error;
    fs::create_directories(out, error);
    check(!error, "cannot create {}: {}", out.string(), error.message());
    write_file_atomically(out / "run.json", merged->text());
    Ledger ledger(out / Ledger::file_name);
    ledger.append_all(std::move(entries));
    return call_study(out, out, *merged, program, rebuild_words(accept_code));
  });
}
