// Errors. Every message reads "[op] expected ..., got ...", and says where it happened when a scope is open
// (core/scope.h).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace plumb {

// What went wrong at run time. what() is one line that names the op, what was expected and what came; a second line
// says where.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// What is wrong on a command line or in a configuration: programs end with exit status 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Throws Error(message), with the open scope's module path, phase and step appended.
[[noreturn]] void fail(const std::string& message);

// For the user's mistakes: throws Error unless `ok`. The message is formatted only on failure.
//   check(x.dim(-1) == d, "[linear] expected input [.., {}], got {}", d, x.shape());
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    fail(fmt::format(message, std::forward<Args>(args)...));
}

// For ours: a failure is a bug in Plumb, and the message asks for a report.
template <class... Args>
void internal_check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    fail("internal error, please report it: " + fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace plumb
