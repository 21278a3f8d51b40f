// The folder a run writes into: created or checked, locked, and described by its run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/run_options.h"
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/train/linear_model.h"

namespace plumb::lab {

class Cli;

// What computes: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3", and the threads in use.
struct Machine {
  std::string device;
  int threads = 1;
};

// What was trained and validated on, without the images.
struct DataFacts {
  std::string name = {}, text = {};        // "mnist"; "mnist, 60000 training images, 10000 validation images: the published test set; 10 classes"
  std::string validation_is = {};          // "the published test set"
  std::string hash = {};                   // of the images and labels
  ImageSet images = {};                    // sizes and classes alone
  std::optional<LinearModel> linear = {};  // what a linear model makes of it, where that is known
};

// What run.json says besides the settings.
struct RunFacts {
  Machine machine = {};
  DataFacts data = {};
  std::string code = {};                  // code_hash()
  std::vector<std::string> outputs = {};  // files that the experiment writes besides those of every run
};

// run.json.
struct RunDescription {
  std::string experiment = {}, version = {}, commit = {}, build = {};
  std::string program = {};  // path of the program that ran
  RunFacts facts = {};
  std::string command_line = {}, started = {};
  std::string settings = {};                    // a JSON object
  std::vector<std::string> fixed = {};          // the settings that decide how each arm ends: the same in all that goes together
  std::vector<std::string> accepted_code = {};  // besides facts.code: whose arms are in the tables

  std::string text() const;
  // Throws UsageError, in which `file` is the name, where the text is not that of a run.json, or is one of an older layout.
  static RunDescription parse(const std::string& text, const std::string& file);
};

// Writes figures/<id>.svg and .csv into a run's folder, and removes those of a former call that are not among them. What else lies there stays.
void write_figures(const std::filesystem::path& run, const std::vector<Figure>& figures);

// Makes runs/NAME, runs/NAME-2, ..: the first that is not there yet. Throws Error where it cannot.
std::filesystem::path new_run_folder(const std::string& name);

class RunFolder {
 public:
  // Opens options.out, or a new runs/<experiment>-<YYYYmmdd-HHMMSS>, and writes run.json unless it resumes.
  //   missing or empty            used
  //   holds anything              UsageError, unless:
  //   --resume                    run.json must be of this experiment, with settings that give the same results; else UsageError. It is then written
  //                               anew: with the axes and the code of this call
  //   --overwrite                 the files of the former run are deleted; UsageError if the folder holds anything but a run
  // Throws Error when another process writes there or the file system refuses. Nothing changes in a folder that is refused.
  RunFolder(const Cli& cli, const RunOptions& options, const RunFacts& facts);
  // The folder options.out for --rebuild and --replay, whose run.json stays as it is and must be of this experiment with settings that give the same
  // results; else UsageError.
  RunFolder(const Cli& cli, const RunOptions& options);
  ~RunFolder();  // lets other processes in
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // True for the files and folders that every run may write, run.json among them.
  static bool writes(const std::string& name);

  // What the constructor would refuse, without making or changing anything.
  static void check_beforehand(const Cli& cli, const RunOptions& options);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* file) const { return path_ / file; }
  const RunDescription& description() const { return description_; }
  // Takes back what the constructor made, for a run that never began.
  void discard();

 private:
  void create(const Cli& cli, const RunOptions& options);
  void lock();
  void unlock();

  std::filesystem::path path_;
  int lock_ = -1;
  RunDescription description_;
};

}  // namespace plumb::lab
