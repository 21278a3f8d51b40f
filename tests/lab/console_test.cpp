#include "experiments/lab/console.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::lab;

TEST_CASE("messages of a program with closed streams do not go into its files") {
  const test::TemporaryFolder folder;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
    ::_exit(exit_status([&] {
      for (const char* name : {"a", "b", "c"}) {
        const int file = ::open((folder / name).c_str(), O_CREAT | O_WRONLY, 0600);
        check(file > STDERR_FILENO && ::write(file, "data", 4) == 4, "cannot write {}", name);
      }
      note_error("a message\n");
      write_result("a result\n");
      return 0;
    }));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 1);  // the result could not be written
  for (const char* name : {"a", "b", "c"}) CHECK(read_file(folder / name) == "data");
}
