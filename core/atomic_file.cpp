// Files that are complete or absent, by POSIX calls.
#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace plumb {
namespace {

constexpr std::string_view temporary_suffix = ".plumb-tmp";

// Throws Error for the system call that just failed.
[[noreturn]] void fail_errno(const char* what, const std::filesystem::path& path) {
  fail(fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Returns false if closing failed: some file systems report a full disk only when a file is closed.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Descriptor folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Returns whether the folder was synced. Some network file systems refuse fsync on a folder (EINVAL); the rename is
// then as durable as that file system allows, which counts as success.
bool sync_folder(const Descriptor& folder) {
  return folder.is_open() && (::fsync(folder.get()) == 0 || errno == EINVAL || errno == ENOTSUP);
}

// Creates a file beside `path`, with a name such as ".results.csv.5f0c09e81d2a7b34.plumb-tmp": hidden, recognisable,
// and random, so that a folder from elsewhere cannot have a link of this name. Returns the name in `name`.
Descriptor create_temporary(const Descriptor& folder, const std::filesystem::path& path, std::string& name) {
  for (;;) {
    std::uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) fail_errno("write", path);
    name = fmt::format(".{}.{:016x}{}", path.filename().string(), bits, temporary_suffix);
    Descriptor file(::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.is_open()) return file;
    if (errno != EEXIST) fail_errno("write", path);
  }
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, std::span(&content, 1));
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  const Descriptor folder = folder_of(path);
  if (!folder.is_open()) fail_errno("write", path);
  const std::string name = path.filename().string();
  struct stat target {};
  if (name.empty() || (::fstatat(folder.get(), name.c_str(), &target, 0) == 0 && S_ISDIR(target.st_mode))) {
    errno = EISDIR;
    fail_errno("write", path);
  }
  check(target.st_mode == 0 || S_ISREG(target.st_mode),
        "cannot write {}: expected a file or nothing at this place, got a pipe or a device; remove it", path.string());

  std::string temporary;
  Descriptor file = create_temporary(folder, path, temporary);
  if (!std::ranges::all_of(parts, [&](std::string_view part) { return write_all(file.get(), part); }) ||
      ::fsync(file.get()) != 0 || !file.close() ||
      ::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0) {
    const int reason = errno;
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    errno = reason;
    fail_errno("write", path);
  }
  if (!sync_folder(folder)) fail_errno("sync the folder of", path);
}

void write_output(const std::filesystem::path& path, std::string_view content) {
  struct stat target {};
  const bool of_system = path.native().starts_with("/dev/") || path.native().starts_with("/proc/");
  if (::stat(path.c_str(), &target) != 0 || S_ISDIR(target.st_mode) || (S_ISREG(target.st_mode) && !of_system))
    return write_file_atomically(path, content);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));  // /dev/stdout may be a file
  if (!file.is_open() || !write_all(file.get(), content) || !file.close()) fail_errno("write", path);
}

void sync_folder_of(const std::filesystem::path& path) {
  if (!sync_folder(folder_of(path))) fail_errno("sync the folder of", path);
}

std::string read_file(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) fail_errno("read", path);
  std::string content;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("read", path);
    if (got == 0) return content;
    content.append(block, static_cast<std::size_t>(got));
  }
}

bool is_temporary_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') && name.ends_with(temporary_suffix);
}

}  // namespace plumb
