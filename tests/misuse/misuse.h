// Support for tests of user mistakes. Each case runs in a separate process, because CTest starts one process per case.
// A case must end with one error that gives the expected input, the given input and a remedy. A signal, an "internal
// error" or no error fails the case.
#pragma once

#include <functional>
#include <string>

#include "core/array.h"
#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

namespace plumb::test {

inline constexpr Defaults f64{DType::f64, Device::cpu}, reference{DType::f32, Device::reference};
inline const std::string got_undefined =
    "expected a tensor, got an undefined tensor (from Gradients::find() of no variable of this graph, or consumed by "
    "an earlier backward(std::move(loss))?)";

// Returns the message of the error that `f` throws. If `f` throws nothing or the message blames Plumb, fails the check
// and returns "".
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

// Checks that the statement is refused with a message that contains `text`.
#define CHECK_REFUSED(statement, text)                                                    \
  do {                                                                                    \
    const std::string refused_message = plumb::test::refusal([&] { (void)(statement); }); \
    INFO("the message: " << refused_message);                                             \
    CHECK(refused_message.find(text) != std::string::npos);                               \
  } while (false)
