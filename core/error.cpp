// Throws errors, and ends the program with one line for an exception that is not caught.
#include "core/error.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/one_line.h"
#include "core/scope.h"

namespace plumb {
namespace {

std::terminate_handler before = nullptr;

// Prints one line and ends the program, in the same form as a program whose main() catches exceptions
// (experiments/lab/cli/cli.h, exit_status). No stack is unwound and no object is destroyed.
[[noreturn]] void end(const std::string& message, int status) {
  std::fflush(stdout);
  const std::string line = "error: " + one_line(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  std::_Exit(status);
}

// Handles exceptions that are not caught. The standard library would print "terminate called" and abort.
[[noreturn]] void end_of_uncaught() {
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const UsageError& e) {
      end(e.what(), 2);
    } catch (const OutOfMemory& e) {
      end(e.what(), 1);
    } catch (const std::bad_alloc&) {
      end("out of memory", 1);
    } catch (const std::exception& e) {
      end(e.what(), 1);
    } catch (...) {
    }
  }
  if (before) before();
  std::abort();
}

// Runs before the initialisers of all other files, because these may throw: gates are registered at namespace scope.
[[gnu::constructor(101)]] void install() { before = std::set_terminate(end_of_uncaught); }

}  // namespace

void fail(const std::string& message) {
  const std::string place = current_place();
  throw Error(place.empty() ? message : message + "\n      " + place);
}

}  // namespace plumb
