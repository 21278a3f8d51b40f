#include "experiments/lab/run/files.h"

#include <algorithm>
#include <fstream>

#include "core/atomic_file.h"
#include "core/error.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

// The files that every study may write. run.json lists the further files of a study. files_of_run() puts run.json last:
// if a deletion is interrupted, run.json still identifies the folder as a study folder.
constexpr const char* run_files[] = {"profile.json", "profile.txt", "report.html",     "metrics.jsonl", "results.csv",
                                     "results.md",   "claims.csv",  "comparisons.csv", "rates.csv",     "ledger.jsonl"};

// Appends the files that a study has written to `within`: to the subfolder `name` (such as "weights") or to a folder in
// this subfolder. If `within` has no other files, the function also appends `within` and returns true.
bool add_files_within(std::vector<fs::path>& files, const fs::path& within, const std::string& name) {
  const std::vector<std::string> figures = name == figures_name ? figures_in(within) : std::vector<std::string>();
  const auto is_ours = [&](const fs::path& file) {
    const std::string text = file.filename().string();
    return is_temporary_file(file) ||
           (name == figures_name && (text == figures_list || std::ranges::find(figures, text) != figures.end())) ||
           (name == tensorboard_name && text.starts_with("events.out.tfevents.")) ||
           ((name == "weights" || name == "checkpoints") && text.ends_with(".safetensors"));
  };
  bool all = true;
  for (const fs::directory_entry& e : entries_of(within)) {
    const bool is_folder = e.symlink_status().type() == fs::file_type::directory;
    if (is_folder && name == tensorboard_name)  // each trial has a folder
      all = add_files_within(files, e.path(), name) && all;
    else if (!is_folder && is_ours(e.path()))
      files.push_back(e.path());
    else
      all = false;
  }
  if (all) files.push_back(within);
  return all;
}

}  // namespace

bool is_run_file(const std::string& name) {
  return name == "run.json" || std::ranges::find(run_files, name) != std::end(run_files) ||
         std::ranges::find(run_folders, name) != std::end(run_folders);
}

bool is_leftover(const fs::path& path) { return path.filename() == lock_name || is_temporary_file(path); }

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
    if (line.find('/') == line.npos && (line.ends_with(".svg") || line.ends_with(".csv"))) names.push_back(line);
  return names;
}

std::vector<fs::path> files_of_run(const fs::path& folder, const StudyDescription& run) {
  std::vector<std::string> names(std::begin(run_files), std::end(run_files));
  names.insert(names.end(), run.facts.outputs.begin(), run.facts.outputs.end());
  std::vector<fs::path> files;
  for (const std::string& name : names)
    if (const fs::file_status status = fs::symlink_status(folder / name);
        fs::exists(status) && !fs::is_directory(status))
      files.push_back(folder / name);
  for (const char* name : run_folders)
    if (fs::symlink_status(folder / name).type() == fs::file_type::directory)
      add_files_within(files, folder / name, name);
  files.push_back(folder / "run.json");
  return files;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  check(!error, "cannot delete {}: {}", path.string(), error.message());
}

}  // namespace plumb::lab
