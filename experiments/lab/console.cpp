#include "experiments/lab/console.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "core/one_line.h"

namespace plumb::lab {

int exit_status(const std::function<int()>& body) {
  const auto report = [](const char* message, int status) {
    note_error("error: " + one_line(message) + "\n");
    return status;
  };
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

void note_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void write_result(std::string_view text, std::FILE* out) {
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
  check(written, "cannot write the result: {}", std::strerror(errno));
}

}  // namespace plumb::lab
