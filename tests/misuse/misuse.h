// What a user may get wrong: each case runs in a process of its own (CTest starts one a case) and must end in one error
// that says what was expected, what came and what to do. A signal, an "internal error" or silence fails it.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "tests/support/catch.h"

namespace plumb::test {

// The message of the error that `f` throws; "" and a failed check if it throws none, or one that blames Plumb.
inline std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string message = e.what();
    CHECK(message.find("internal error") == std::string::npos);
    return message;
  } catch (const std::exception& e) {
    FAIL_CHECK("expected a plumb::Error, got another exception: " << e.what());
    return "";
  }
  FAIL_CHECK("expected an error, got none");
  return "";
}

}  // namespace plumb::test

// Refused with a message that holds `text`.
#define CHECK_REFUSED(statement, text)                                                    \
  do {                                                                                    \
    const std::string refused_message = plumb::test::refusal([&] { (void)(statement); }); \
    INFO("the message: " << refused_message);                                             \
    CHECK(refused_message.find(text) != std::string::npos);                               \
  } while (false)
