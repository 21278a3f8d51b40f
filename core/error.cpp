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

// Ends the program in one line, as a program ends whose main catches (experiments/lab/cli/cli.h, exit_status). Nothing
// is unwound or destroyed.
[[noreturn]] void end(const std::string& message, int status) {
  std::fflush(stdout);
  const std::string line = "error: " + one_line(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  std::_Exit(status);
}

// For exceptions that no one catches: the standard library would say "terminate called", and abort.
[[noreturn]] void end_of_uncaught() {
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const UsageError& e) {
      end(e.what(), 2);
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

// Before the initialisers of all other files, as these may throw: a gate is registered at namespace scope.
[[gnu::constructor(101)]] void install() { before = std::set_terminate(end_of_uncaught); }

}  // namespace

void fail(const std::string& message) {
  const std::string place = current_place();
  throw Error(place.empty() ? message : message + "\n      " + place);
}

}  // namespace plumb
