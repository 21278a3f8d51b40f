#include "core/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
namespace fs = std::filesystem;
using test::contains;
using test::error_of;
using test::FileSizeLimit;
using test::TemporaryFolder;

namespace {

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a file is written, replaced and read back byte by byte", "[core]") {
  const TemporaryFolder folder;
  const std::string bytes("one\0two\r\n\xff", 10);
  write_file_atomically(folder / "a", bytes);
  CHECK(read_file(folder / "a") == bytes);
  write_file_atomically(folder / "a", std::string(300'000, 'x'));
  CHECK(read_file(folder / "a") == std::string(300'000, 'x'));
  write_file_atomically(folder / "a", "");
  CHECK(read_file(folder / "a").empty());
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a new file has the permissions of the umask", "[core]") {
  const TemporaryFolder folder;
  const mode_t former = ::umask(027);
  write_file_atomically(folder / "a", "x");
  ::umask(former);
  CHECK(fs::status(folder / "a").permissions() == fs::perms(0640));
}

TEST_CASE("a write that fails half way leaves the old file and no other file", "[core]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    message = error_of([&] { write_file_atomically(folder / "a", std::string(5000, 'x')); });
  }
  CHECK(message == "cannot write " + (folder / "a").string() + ": File too large");
  CHECK(read_file(folder / "a") == "old");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a full disk gives an error of one line", "[core]") {
  if (!fs::exists("/dev/full")) PLUMB_SKIP("no /dev/full");
  CHECK(error_of([] { write_output("/dev/full", "x"); }) == "cannot write /dev/full: No space left on device");
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("only an output that the user types may be a pipe", "[core]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    CHECK(error_of([&] { write_file_atomically(folder / name, "x"); }) ==
          "cannot write " + (folder / name).string() +
              ": expected a file or nothing at this place, got a pipe or a device; remove it");
    const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
    write_output(folder / name, "text");
    char text[5] = {};
    CHECK(::read(reader, text, 4) == 4);
    CHECK(std::string(text) == "text");
    ::close(reader);
  }
  write_output(folder / "file", "x");
  CHECK(read_file(folder / "file") == "x");
  CHECK(files_in(folder.path()) == 3);
}

TEST_CASE("a write replaces a link and does not change its target", "[core]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  fs::create_symlink("no", folder / "dangling");
  for (const char* name : {"link", "dangling"}) {
    write_file_atomically(folder / name, "new");
    CHECK(fs::is_regular_file(fs::symlink_status(folder / name)));
    CHECK(read_file(folder / name) == "new");
  }
  CHECK(read_file(folder / "target") == "old");
  CHECK_FALSE(fs::exists(folder / "no"));
}

TEST_CASE("a link with the guessed name of a temporary file is not written through", "[core]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "target", "old");
  fs::create_directory(folder / "a");
  for (int call = 0; call < 2000; ++call)  // the names of an earlier version
    fs::create_symlink("../target", folder / fmt::format("a/.file.{}-{}.plumb-tmp", ::getpid(), call));
  for (int round = 0; round < 3; ++round) write_file_atomically(folder / "a/file", "new");
  CHECK(read_file(folder / "target") == "old");
  CHECK(read_file(folder / "a/file") == "new");
  CHECK(files_in(folder / "a") == 2001);
}

TEST_CASE("a folder is not replaced by a file", "[core]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  CHECK_THAT(error_of([&] { write_file_atomically(folder / "a", "x"); }), contains("Is a directory"));
  CHECK(fs::is_directory(folder / "a"));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("the error about a missing folder has its name and the reason", "[core]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { write_file_atomically(folder / "no" / "a", "x"); }) ==
        "cannot write " + (folder / "no/a").string() + ": No such file or directory");
  CHECK_THAT(error_of([&] { read_file(folder / "no"); }), contains("cannot read"));
}

TEST_CASE("the error about a read-only folder has its name and the reason", "[core]") {
  if (::geteuid() == 0) PLUMB_SKIP("root may write everywhere");
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CHECK_THAT(error_of([&] { write_file_atomically(folder / "a", "x"); }), contains("Permission denied"));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_CASE("a process killed while it writes leaves complete files and recognisable leftovers", "[core]") {
  const TemporaryFolder folder;
  const std::string old_content(200'000, 'a'), new_content(200'000, 'b');
  for (int round = 0; round < 20; ++round) {
    write_file_atomically(folder / "a", old_content);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) write_file_atomically(folder / "a", new_content);
    }
    ::usleep(static_cast<useconds_t>(round * 300));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string content = read_file(folder / "a");
    REQUIRE((content == old_content || content == new_content));
    for (const auto& entry : fs::directory_iterator(folder.path()))
      REQUIRE((entry.path().filename() == "a" || is_temporary_file(entry.path())));
  }
  CHECK_FALSE(is_temporary_file("results.csv"));
  CHECK_FALSE(is_temporary_file("folder.plumb-tmp/results.csv"));
}
