// The folder a run writes into: created or checked, locked, and described by its run.json.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/common/run_options.h"

namespace plumb::lab {

class Cli;

// What computes: "AMD EPYC 9V45 64-Core Processor" on the host, a GPU's name otherwise, and the threads in use.
struct Machine {
  std::string device;
  int threads = 1;
};

std::string cpu_model();  // "unknown CPU" where the system does not tell

class RunFolder {
 public:
  // Opens options.out, or a new runs/<experiment>-<YYYYmmdd-HHMMSS>, and writes run.json unless it resumes.
  //   missing or empty            used
  //   holds anything              UsageError, unless:
  //   --resume                    run.json must be of this experiment, with settings that give the same results; else UsageError
  //   --overwrite                 the files of the former run are deleted; UsageError if the folder holds anything but a run
  // Throws Error when another process writes there or the file system refuses. Nothing changes in a folder that is refused.
  // `data` says in run.json what was trained and validated on; nothing if empty.
  RunFolder(const Cli& cli, const RunOptions& options, const Machine& machine, const std::string& data = {});
  ~RunFolder();  // lets other processes in
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // What the constructor would refuse, without making or changing anything.
  static void check_beforehand(const Cli& cli, const RunOptions& options);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* file) const { return path_ / file; }
  bool resumed() const { return resumed_; }  // whether an earlier run.json was found and kept

 private:
  void create(const Cli& cli, const RunOptions& options);
  void lock();
  void unlock();

  std::filesystem::path path_;
  int lock_ = -1;
  bool resumed_ = false;
};

}  // namespace plumb::lab
