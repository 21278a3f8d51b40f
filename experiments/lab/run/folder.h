// The folder that a study writes its results into (run folder): the study creates, checks and locks it, and describes
// itself in its run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// Creates the first of runs/NAME, runs/NAME-2, runs/NAME-3, ... that does not exist. Throws Error if it cannot.
std::filesystem::path new_run_folder(const std::string& name);

// The run folder of a study, locked while this object exists.
class StudyFolder {
 public:
  // Opens options.out, or a new folder runs/<experiment>-<YYYYmmdd-HHMMSS>, locks it and writes run.json. A missing or
  // empty folder is always used. A folder that holds files is refused with UsageError, except with these options:
  //   --resume     run.json must be of this experiment, with settings that give the same results; otherwise UsageError.
  //                It is then rewritten with the axes and the code of this call.
  //   --overwrite  The files of the earlier run are deleted. UsageError if the folder holds any other file.
  // Throws Error if another process writes to the folder or the file system refuses. A refused folder is not changed.
  StudyFolder(const Cli& cli, const StudyOptions& options, const StudyFacts& facts);
  // Opens the existing folder options.out for --rebuild and --replay, and leaves its run.json as it is. Throws
  // UsageError if run.json is of another experiment or has settings that give other results.
  StudyFolder(const Cli& cli, const StudyOptions& options);
  ~StudyFolder();  // unlocks the folder
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  // Makes the checks of the first constructor and throws its errors, but creates and changes nothing.
  static void check_beforehand(const Cli& cli, const StudyOptions& options);

  // The path of the folder.
  const std::filesystem::path& path() const { return path_; }
  // The path of a file in the folder.
  std::filesystem::path operator/(const char* file) const { return path_ / file; }
  // The content of run.json.
  const StudyDescription& description() const { return description_; }
  // Deletes run.json, and the folder if it is then empty: for a study that failed before its first trial.
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
