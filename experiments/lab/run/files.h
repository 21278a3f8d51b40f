// The files and folders that a study may write into its study folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/lab/record/point.h"

namespace plumb::lab {

// Names in a study folder. `figures_list` is a file in the folder `figures_name`, and lists the figures that the study
// has written. Each trial has one event file, in a folder of its own in the folder `tensorboard_name`.
inline constexpr const char *lock_name = ".lock", *figures_name = "figures", *figures_list = ".figures",
                            *tensorboard_name = "tensorboard", *event_file_name = "events.out.tfevents.0.plumb",
                            *weights_name = "weights", *checkpoints_name = "checkpoints";
inline constexpr const char* run_folders[] = {weights_name, checkpoints_name, figures_name, tensorboard_name};

// Whether every study may write a file or folder of this name. The names include run.json.
bool is_run_file(const std::string& name);
// Whether the entry is a lock file or a temporary file. A killed process can leave such a file behind.
bool is_leftover(const std::filesystem::directory_entry& entry);

// The files of a trial in a study folder. `key` is the key of the trial (LedgerEntry::key).
std::filesystem::path weights_file(const std::filesystem::path& folder, const Point& trial);
std::filesystem::path checkpoint_file(const std::filesystem::path& folder, const Point& trial, const std::string& key);
std::filesystem::path event_file(const std::filesystem::path& folder, const Point& trial);
// The mark that follows the name of a checkpoint that is kept but not used: the hash of the code that wrote it, "unfit"
// or "damaged". The hash comes from the checkpoint, so any other text gives "damaged".
std::string mark_of_checkpoint(const std::string& why);

// Throws UsageError if `file` exists and is a link or no regular file.
void check_plain(const std::filesystem::path& file);
// Throws UsageError if the files that Plumb reads in a study folder are not regular files, or if the subfolders into
// which Plumb writes are not folders. A study folder from elsewhere may have links and pipes at these places. `folder`
// itself may be a link. All programs that open a study folder call this function before they read a file in it.
void check_own_files(const std::filesystem::path& folder);

// entries_of() returns the entries of a folder. remove_file() deletes a file or an empty folder. Both functions throw
// Error if the file system refuses.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);
void remove_file(const std::filesystem::path& path);

// The names of the figures that a study has written into `folder` and that are still there as files.
std::vector<std::string> figures_in(const std::filesystem::path& folder);

// The content of a study folder, without leftovers in any folder.
struct FolderContent {
  // The files and folders that a study with the declared `outputs` may have written. In weights/, checkpoints/ and
  // tensorboard/, these are the files of the trials in the ledger, and checkpoints of trials that have not ended. The
  // contents of a folder come before the folder, and run.json is last.
  std::vector<std::filesystem::path> ours = {};
  std::vector<std::filesystem::path> others = {};
};
FolderContent content_of(const std::filesystem::path& folder, const std::vector<std::string>& outputs);

}  // namespace plumb::lab
