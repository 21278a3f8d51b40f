// The files and folders that a study may write into its run folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// Names in a run folder. `figures_list` is a file in the folder `figures_name`; it lists the figures that the study
// wrote.
inline constexpr const char *lock_name = ".lock", *figures_name = "figures", *figures_list = ".figures",
                            *tensorboard_name = "tensorboard";
inline constexpr const char* run_folders[] = {"weights", "checkpoints", figures_name, tensorboard_name};

// True for the names of the files and folders that every study may write, including run.json.
bool is_run_file(const std::string& name);
// True for a lock file or a temporary file. A killed process can leave them behind.
bool is_leftover(const std::filesystem::path& path);

// The entries of a folder; and the deletion of a file or empty folder. Both throw Error if the file system refuses.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);
void remove_file(const std::filesystem::path& path);

// The names of the figures that a study has written into `folder`.
std::vector<std::string> figures_in(const std::filesystem::path& folder);
// The files and folders that a study has written: the contents of a folder come before the folder, run.json is last.
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& folder, const StudyDescription& run);

}  // namespace plumb::lab
