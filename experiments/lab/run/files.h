// The files and folders that a run may write into its folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// Its folders; `figures` holds the figures that the file `figures_list` in it names.
inline constexpr const char *lock_name = ".lock", *figures_name = "figures", *figures_list = ".figures",
                            *tensorboard_name = "tensorboard";
inline constexpr const char* run_folders[] = {"weights", "checkpoints", figures_name, tensorboard_name};

// True for the files and folders that every run may write, run.json among them.
bool is_run_file(const std::string& name);
// True for a lock or a temporary file: traces of a process that was killed.
bool is_leftover(const std::filesystem::path& path);

// Throw Error where the file system refuses.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);
void remove_file(const std::filesystem::path& path);

// The names of the figures that a run has written into `folder`.
std::vector<std::string> figures_in(const std::filesystem::path& folder);
// The files and folders that a run has written, the folders' contents first, run.json last.
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& folder, const StudyDescription& run);

}  // namespace plumb::lab
