#include "experiments/lab/run/stored_run.h"

#include "core/atomic_file.h"
#include "experiments/lab/console.h"
#include "experiments/lab/run/files.h"

namespace plumb::lab {

namespace fs = std::filesystem;

bool is_kept(const fs::path& path) { return path.extension() == ".jsonl"; }
fs::path description_of(const fs::path& ledger) { return fs::path(ledger).replace_extension(".json"); }

StudyDescription described(const fs::path& folder) {
  fs::path file;
  if (is_kept(folder)) {
    file = description_of(folder);
    usage_check(fs::exists(folder), "{}: no such file", folder.string());
    usage_check(fs::exists(file), "{} has no description {}; `report --keep` writes both files", folder.string(),
                file.string());
    check_plain(folder);
    check_plain(file);
  } else {
    file = folder / "run.json";
    usage_check(fs::is_directory(folder), "{}: no such folder", folder.string());
    usage_check(fs::exists(file), "{} has no run.json, so it is not a study folder", folder.string());
    check_own_files(folder);
  }
  return StudyDescription::parse(read_file(file), file.string());
}

}  // namespace plumb::lab
