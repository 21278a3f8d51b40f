// The files and folders that a study may write into its study folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// Names in a study folder. `figures_list` is a file in the folder `figures_name`, and lists the figures that the study
// has written.
inline constexpr const char *lock_name = ".lock", *figures_name = "figures", *figures_list = ".figures",
                            *tensorboard_name = "tensorboard";
inline constexpr const char* run_folders[] = {"weights", "checkpoints", figures_name, tensorboard_name};

// Whether every study may write a file or folder of this name. The names include run.json.
bool is_run_file(const std::string& name);
// Whether the path is a lock file or a temporary file. A killed process can leave such a file behind.
bool is_leftover(const std::filesystem::path& path);

// entries_of() returns the entries of a folder. remove_file() deletes a file or an empty folder. Both functions throw
// Error if the file system refuses.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);
void remove_file(const std::filesystem::path& path);

// The names of the figures that a study has written into `folder`.
std::vector<std::string> figures_in(const std::filesystem::path& folder);
// The files and folders that a study has written. The contents of a folder come before the folder, and run.json is
// last.
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& folder, const StudyDescription& run);

}  // namespace plumb::lab
