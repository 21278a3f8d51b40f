#include "experiments/lab/run/files.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "core/atomic_file.h"
#include "experiments/lab/console.h"
#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/record/ledger.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

// The files that every study may write, without run.json and the ledger.
constexpr const char* run_files[] = {"profile.json", "profile.txt", "report.html",     "metrics.jsonl", "results.csv",
                                     "results.md",   "claims.csv",  "comparisons.csv", "rates.csv"};

fs::file_type type_of(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type();
}

void check_type(const fs::path& path, fs::file_type expected) {
  const fs::file_type type = type_of(path);
  usage_check(type != fs::file_type::symlink,
              "{} is a link, which may lead out of the study folder; replace the link by its target", path.string());
  usage_check(type == fs::file_type::not_found || type == expected, "{} is not a {}; move it away", path.string(),
              expected == fs::file_type::regular ? "file" : "folder");
}

// Whether the file is the checkpoint of a trial that its own content names. The ledger does not name a trial that has
// not ended.
bool is_named_checkpoint(const fs::path& file) {
  try {
    const TrialCheckpoint c = read_checkpoint(file);
    return checkpoint_file("", c.record.point, c.key).filename() == file.filename();
  } catch (const Error&) {
    return false;
  }
}

// Adds the regular files in `within` to the content, and then `within` itself if all its entries are ours.
void add_files(FolderContent& content, const fs::path& within, const std::function<bool(const fs::path&)>& is_ours) {
  const std::size_t others = content.others.size();
  for (const fs::directory_entry& e : entries_of(within))
    if (const bool file = e.symlink_status().type() == fs::file_type::regular; !file || !is_temporary_file(e.path()))
      (file && is_ours(e.path()) ? content.ours : content.others).push_back(e.path());
  if (content.others.size() == others) content.ours.push_back(within);
}

void add_folder(FolderContent& content, const fs::path& folder, const std::string& name, const Ledger& ledger) {
  std::set<std::string> known;  // the names of files or folders that the ledger or a list tells
  for (const LedgerEntry& e : ledger.entries())
    known.insert((name == weights_name       ? weights_file("", e.record.point)
                  : name == checkpoints_name ? checkpoint_file("", e.record.point, e.key).stem()
                                             : event_file("", e.record.point).parent_path().filename())
                     .filename()
                     .string());
  if (name == figures_name) {
    const std::vector<std::string> figures = figures_in(folder / name);
    known = {figures.begin(), figures.end()};
    known.insert(figures_list);
  }
  if (name == weights_name || name == figures_name)
    return add_files(content, folder / name, [&](const fs::path& f) { return known.contains(f.filename().string()); });
  if (name == checkpoints_name)
    return add_files(content, folder / name, [&](const fs::path& file) {
      const std::string stem = file.stem().string();
      const std::size_t mark = stem.rfind('-');
      const bool set_aside = mark != stem.npos && mark_of_checkpoint(stem.substr(mark + 1)) == stem.substr(mark + 1) &&
                             known.contains(stem.substr(0, mark));
      return file.extension() == ".safetensors" && (known.contains(stem) || set_aside || is_named_checkpoint(file));
    });
  const std::size_t others = content.others.size();
  for (const fs::directory_entry& e : entries_of(folder / name))
    if (e.symlink_status().type() == fs::file_type::directory && known.contains(e.path().filename().string()))
      add_files(content, e.path(), [](const fs::path& file) { return file.filename() == event_file_name; });
    else
      content.others.push_back(e.path());
  if (content.others.size() == others) content.ours.push_back(folder / name);
}

}  // namespace

bool is_run_file(const std::string& name) {
  return name == "run.json" || name == Ledger::file_name || std::ranges::find(run_files, name) != std::end(run_files) ||
         std::ranges::find(run_folders, name) != std::end(run_folders);
}

bool is_leftover(const fs::directory_entry& entry) {
  return entry.symlink_status().type() != fs::file_type::directory &&
         (entry.path().filename() == lock_name || is_temporary_file(entry.path()));
}

fs::path weights_file(const fs::path& folder, const Point& trial) {
  return folder / weights_name / (trial.file_stem() + ".safetensors");
}

fs::path checkpoint_file(const fs::path& folder, const Point& trial, const std::string& key) {
  return folder / checkpoints_name / fmt::format("{}-{:.8}.safetensors", trial.file_stem(), key);
}

std::string mark_of_checkpoint(const std::string& why) {
  const bool hash = !why.empty() && why.find_first_not_of("0123456789abcdef") == why.npos;
  return hash || why == "unfit" ? why : "damaged";
}

fs::path event_file(const fs::path& folder, const Point& trial) {
  return folder / tensorboard_name / trial.file_stem() / event_file_name;
}

void check_plain(const fs::path& file) { check_type(file, fs::file_type::regular); }

void check_own_files(const fs::path& folder) {
  for (const char* name : {"run.json", Ledger::file_name, lock_name}) check_type(folder / name, fs::file_type::regular);
  for (const char* name : run_folders) check_type(folder / name, fs::file_type::directory);
  check_type(folder / figures_name / figures_list, fs::file_type::regular);
  for (const char* name : {checkpoints_name, tensorboard_name})
    if (type_of(folder / name) == fs::file_type::directory)
      for (const fs::directory_entry& e : entries_of(folder / name))
        check_type(e.path(), e.symlink_status().type() == fs::file_type::directory ? fs::file_type::directory
                                                                                   : fs::file_type::regular);
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(*it);
  check(!error, "cannot read {}: {}", folder.string(), error.message());
  return entries;
}

std::vector<std::string> figures_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::ifstream list(folder / figures_list);
  for (std::string line; std::getline(list, line);)
    if (line.find('/') == line.npos && (line.ends_with(".svg") || line.ends_with(".csv")) &&
        type_of(folder / line) == fs::file_type::regular)
      names.push_back(line);
  return names;
}

FolderContent content_of(const fs::path& folder, const std::vector<std::string>& outputs) {
  const Ledger ledger(folder / Ledger::file_name);
  FolderContent content;
  for (const fs::directory_entry& e : entries_of(folder)) {
    const std::string name = e.path().filename().string();
    const bool is_folder = e.symlink_status().type() == fs::file_type::directory;
    if (is_leftover(e) || name == "run.json" || name == Ledger::file_name) continue;
    if (is_folder && std::ranges::find(run_folders, name) != std::end(run_folders))
      add_folder(content, folder, name, ledger);
    else if (!is_folder && (is_run_file(name) || std::ranges::find(outputs, name) != outputs.end()))
      content.ours.push_back(e.path());
    else
      content.others.push_back(e.path());
  }
  // If a deletion is interrupted, the ledger still tells the files of trials, and run.json identifies the folder.
  for (const char* name : {Ledger::file_name, "run.json"})
    if (type_of(folder / name) == fs::file_type::regular) content.ours.push_back(folder / name);
  return content;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  check(!error, "cannot delete {}: {}", path.string(), error.message());
}

}  // namespace plumb::lab
