// Files that are whole or absent: no crash, full disk or kill -9 leaves half of one under its final name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumb {

// Replaces the file at `path` by `content`: written beside it, synced, renamed. A device or pipe cannot be renamed over
// and is written straight. Throws Error with the path and the system's reason; the old file then is as it was, and no
// temporary file is left.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Makes the names in the folder of this file durable, as far as the file system does that. Throws Error with the path
// and the system's reason.
void sync_folder_of(const std::filesystem::path& path);

// The bytes of a file; throws Error with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Whether this is the name of a temporary file of write_file_atomically, which a killed process leaves behind.
bool is_temporary_file(const std::filesystem::path& path);

}  // namespace plumb
