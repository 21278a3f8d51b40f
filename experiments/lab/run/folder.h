// The folder a run writes into: created or checked, locked, and described by its run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Cli;

// Makes runs/NAME, runs/NAME-2, ..: the first that is not there yet. Throws Error where it cannot.
std::filesystem::path new_run_folder(const std::string& name);

class StudyFolder {
 public:
  // Opens options.out, or a new runs/<experiment>-<YYYYmmdd-HHMMSS>, and writes run.json unless it resumes.
  //   missing or empty            used
  //   holds anything              UsageError, unless:
  //   --resume                    run.json must be of this experiment, with settings that give the same results; else
  //   UsageError. It is then written
  //                               anew: with the axes and the code of this call
  //   --overwrite                 the files of the former run are deleted; UsageError if the folder holds anything but
  //   a run
  // Throws Error when another process writes there or the file system refuses. Nothing changes in a folder that is
  // refused.
  StudyFolder(const Cli& cli, const StudyOptions& options, const StudyFacts& facts);
  // The folder options.out for --rebuild and --replay, whose run.json stays as it is and must be of this experiment
  // with settings that give the same results; else UsageError.
  StudyFolder(const Cli& cli, const StudyOptions& options);
  ~StudyFolder();  // lets other processes in
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  // What the constructor would refuse, without making or changing anything.
  static void check_beforehand(const Cli& cli, const StudyOptions& options);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* file) const { return path_ / file; }
  const StudyDescription& description() const { return description_; }
  // Takes back what the constructor made, for a run that never began.
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
