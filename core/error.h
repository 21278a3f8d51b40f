// Errors and checks. Every message reads "[op] expected ..., got ..."; if a scope is open (core/scope.h), a second line
// names the module, the phase and the step.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace plumb {

// An error at run time. what() has one line that names the op, the expected value and the actual value. If a scope is
// open, a second line names the module, the phase and the step.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// A mistake on a command line or in a configuration. After this error, programs end with exit status 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A lack of memory for an array, on the host or a device. what() says how many bytes were asked for, in use, reserved
// and free.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const std::string& message) : message_(std::make_shared<const std::string>(message)) {}
  const char* what() const noexcept override { return message_->c_str(); }

 private:
  std::shared_ptr<const std::string> message_;  // shared, so that a copy cannot fail
};

// Throws Error(message). If a scope is open, the message ends with the module path, the phase and the step of the
// scope.
[[noreturn]] void fail(const std::string& message);

// Checks for the user's mistakes: throws Error unless `ok`. The message is formatted only on failure.
//   check(x.dim(-1) == d, "[linear] expected input [.., {}], got {}", d, x.shape());
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    fail(fmt::format(message, std::forward<Args>(args)...));
}

// Checks for bugs in Plumb: like check(), but the message begins with "internal error" and asks for a report.
template <class... Args>
void internal_check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    fail("internal error, please report it: " + fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace plumb
