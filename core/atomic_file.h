// Functions that read files, and functions that write files completely or not at all: a crash, a full disk or kill -9
// never leaves half a file under its final name.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace plumb {

// Replaces the file at `path` by `content`: writes a temporary file in the same folder, syncs it to disk and renames
// it. A link at `path` is replaced, and the target of the link stays unchanged. The temporary file is a new file with a
// random name. Therefore a folder from elsewhere, whose links the caller does not know, cannot lead the content out of
// the folder. Throws Error with the path and the system's reason, also for a pipe or a device. If the temporary file
// cannot be written or renamed, the old file stays unchanged and the temporary file is removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
// The same for content in parts, which follow each other in the file.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts);

// write_file_atomically() for a path that the user types: if `path` is or leads to a pipe or a device, such as
// /dev/stdout, the content is written to it directly.
void write_output(const std::filesystem::path& path, std::string_view content);

// Syncs the folder of `path`, so that a renamed or new file in this folder survives a crash. Some network file systems
// do not support this. Throws Error with the path and the system's reason.
void sync_folder_of(const std::filesystem::path& path);

// Returns the bytes of a file. Throws Error with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Whether `path` has the name of a temporary file of write_file_atomically(). A killed
// process leaves such files behind.
bool is_temporary_file(const std::filesystem::path& path);

}  // namespace plumb
