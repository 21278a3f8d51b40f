#include "experiments/lab/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "core/one_line.h"

namespace plumb::lab {
namespace {

// Opens /dev/null for each standard stream that is closed. Otherwise the next file that the program opens, such as a
// ledger, gets the number of the stream, and messages are written into the file. As on a closed stream, writing to
// stdout and reading from stdin fails.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) {
      [[maybe_unused]] const int opened =  // the lowest free number, which is that of the stream
          ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

}  // namespace

int exit_status(const std::function<int()>& body) {
  const auto report = [](const char* message, int status) {
    note_error("error: " + one_line(message) + "\n");
    return status;
  };
  open_standard_streams();
  try {
    return body();
  } catch (const UsageError& e) {
    return report(e.what(), 2);
  } catch (const OutOfMemory& e) {
    return report(fmt::format("{}; try a smaller --batch", e.what()).c_str(), 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory; try a smaller --batch", 1);
  } catch (const std::exception& e) {
    return report(e.what(), 1);
  } catch (...) {
    return report("the program threw an object that is not a std::exception", 1);
  }
}

void note_error(std::string_view text) {
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    shown += printable(text.substr(begin, end - begin)) + (end < text.size() ? "\n" : "");
    begin = end + 1;
  }
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void write_result(std::string_view text, std::FILE* out) {
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
  check(written, "cannot write the result: {}", std::strerror(errno));
}

}  // namespace plumb::lab
