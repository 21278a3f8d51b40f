// Functions for the messages (stderr), results (stdout) and exit status of a program.
#pragma once

#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace plumb::lab {

// Throws UsageError with the formatted message unless `ok` is true.
template <class... Args>
void usage_check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    throw UsageError(fmt::format(message, std::forward<Args>(args)...));
}

// Runs `body` and returns the exit status for main(). The status is the value of body(), 2 if body() throws UsageError,
// or 1 if body() throws any other exception. After an exception, exit_status() writes one line "error: ..." to stderr.
// If the caller of the program has closed stdin, stdout or stderr, exit_status() opens /dev/null in its place, so that
// no file of the program gets the number of the stream.
// An uncaught exception outside of exit_status() ends the program with the same line and status (core/error.cpp).
int exit_status(const std::function<int()>& body);

// Writes a message to stderr. A failure to write is ignored.
void note_error(std::string_view text);

// Writes a result and flushes the stream. Throws Error if the result cannot be written (full disk, closed pipe).
void write_result(std::string_view text, std::FILE* out = stdout);

}  // namespace plumb::lab
