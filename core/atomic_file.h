// Functions that read files, and functions that write files completely or not at all: a crash, a full disk or kill -9
// never leaves half a file under its final name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumb {

// Replaces the file at `path` by `content`: writes a temporary file in the same folder, syncs it to disk and renames
// it. If `path` is a device or a pipe, which cannot be replaced by renaming, the content is written to it directly.
// Throws Error with the path and the system's reason. If the temporary file cannot be written or renamed, the old file
// stays unchanged and the temporary file is removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Syncs the folder of `path`, so that a renamed or new file in this folder survives a crash. Some network file systems
// do not support this. Throws Error with the path and the system's reason.
void sync_folder_of(const std::filesystem::path& path);

// Returns the bytes of a file. Throws Error with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Whether `path` has the name of a temporary file of write_file_atomically(). A killed
// process leaves such files behind.
bool is_temporary_file(const std::filesystem::path& path);

}  // namespace plumb
