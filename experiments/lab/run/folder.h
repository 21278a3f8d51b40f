// The study folder, into which a study writes its results. StudyFolder creates, checks and locks the folder, and writes
// run.json, the description of the study.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// Creates the first folder of runs/NAME, runs/NAME-2, runs/NAME-3, ... that does not exist. Throws Error if no folder
// can be created.
std::filesystem::path new_run_folder(const std::string& name);

// The study folder of a study. The folder is locked while this object exists.
class StudyFolder {
 public:
  // Opens options.out, or a new folder runs/<experiment>-<YYYYmmdd-HHMMSS>, locks the folder and writes run.json. A
  // folder that does not exist or is empty is always accepted. A folder that contains files is refused with UsageError,
  // except with these options:
  //   --resume     run.json must be of this experiment, with settings that give the same results. The constructor
  //                rewrites run.json with the axes and the code of this call. The claims stay those of the call that
  //                made the folder.
  //   --overwrite  The folder must contain only files that a study with these `facts.outputs` may have written
  //                (content_of() in files.h). The constructor deletes these files. run.json decides nothing here.
  // In all cases, links and pipes at the places of Plumb's own files and subfolders are refused (check_own_files()).
  // Throws Error if another process writes to the folder or if the file system refuses. A refused folder is not
  // changed.
  StudyFolder(const Cli& cli, const StudyOptions& options, const StudyFacts& facts);
  // Opens the existing folder options.out for --rebuild and --replay. The run.json of the folder stays unchanged.
  // Throws UsageError if run.json is of another experiment or has settings that give other results.
  StudyFolder(const Cli& cli, const StudyOptions& options);
  ~StudyFolder();  // unlocks the folder
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  // Makes the checks of the first constructor and throws the same errors, but creates and changes nothing. `outputs` is
  // facts.outputs of the first constructor.
  static void check_beforehand(const Cli& cli, const StudyOptions& options, const std::vector<std::string>& outputs);

  const std::filesystem::path& path() const { return path_; }
  // The path of `file` in the folder.
  std::filesystem::path operator/(const char* file) const { return path_ / file; }
  // The content of run.json.
  const StudyDescription& description() const { return description_; }
  // Deletes run.json, and the folder if nothing else is in it. A study that fails before its first trial calls
  // discard().
  void discard();

 private:
  void create(const Cli& cli, const StudyOptions& options);
  void lock();
  void unlock();

  std::filesystem::path path_;
  int lock_ = -1;
  StudyDescription description_;
};

}  // namespace plumb::lab
