// What a program says outside its run: messages on stderr, results on stdout, its exit status.
#pragma once

#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace plumb::lab {

// For rules over several options: throws UsageError unless `ok`.
template <class... Args>
void usage_check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    throw UsageError(fmt::format(message, std::forward<Args>(args)...));
}

// The exit status of an experiment's main: body()'s value, or, after one line "error: ..." on stderr, 2 for a
// UsageError and 1 for any other exception. An exception outside of it that no code catches ends the program in the
// same line and status (core/error.cpp).
int exit_status(const std::function<int()>& body);

// Writes a message to stderr; one that cannot be written is lost, and nothing else happens.
void note_error(std::string_view text);

// Writes a result; throws Error when it does not arrive (full disk, closed pipe).
void write_result(std::string_view text, std::FILE* out = stdout);

}  // namespace plumb::lab
