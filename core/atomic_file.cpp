// Files that are complete or absent, by POSIX calls.
#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

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

// Returns whether the folder was synced. Some network file systems refuse fsync on a folder (EINVAL); the rename is
// then as durable as that file system allows, which counts as success.
bool sync_folder(const std::filesystem::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.is_open() && (::fsync(fd.get()) == 0 || errno == EINVAL || errno == ENOTSUP);
}

void write_straight(const std::filesystem::path& path, std::string_view content) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.is_open() || !write_all(fd.get(), content) || !fd.close()) fail_errno("write", path);
}

// A name such as ".results.csv.4711-0.plumb-tmp": hidden, recognisable, and different for every process and call.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> calls{0};
  return path.parent_path() /
         fmt::format(".{}.{}-{}{}", path.filename().string(), ::getpid(), calls++, temporary_suffix);
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  struct stat target {};
  const bool exists = ::stat(path.c_str(), &target) == 0;
  if (exists && S_ISDIR(target.st_mode)) {
    errno = EISDIR;
    fail_errno("write", path);
  }
  if (exists && !S_ISREG(target.st_mode)) return write_straight(path, content);

  const std::filesystem::path temporary = temporary_beside(path);
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.is_open()) fail_errno("write", path);
  if (!write_all(fd.get(), content) || ::fsync(fd.get()) != 0 || !fd.close() ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail_errno("write", path);
  }
  sync_folder_of(path);
}

void sync_folder_of(const std::filesystem::path& path) {
  if (!sync_folder(path.has_parent_path() ? path.parent_path() : ".")) fail_errno("sync the folder of", path);
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
