// The outcome of a call: its results, or the message of an error.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "autograd/tensor.h"
#include "core/error.h"
#include "tests/support/catch.h"

namespace plumb::test {

struct Outcome {
  Tensors results = {};
  bool refused = false;
  std::string message = {};
};

// Calls f. An Error and OutOfMemory are outcomes; any other exception fails the test.
inline Outcome outcome_of(const std::function<Tensors()>& f) {
  try {
    return {.results = f()};
  } catch (const Error& e) {
    return {.refused = true, .message = e.what()};
  } catch (const OutOfMemory& e) {
    return {.refused = true, .message = e.what()};
  }
}

// Whether numbers agree up to `tolerance` relative to the largest finite one. NaN agrees with NaN, and an infinity with
// the same infinity.
inline bool agree(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  if (got.size() != wanted.size()) return false;
  double size = 1;
  for (const double v : wanted)
    if (std::isfinite(v)) size = std::max(size, std::abs(v));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted[i] && !(std::isnan(got[i]) && std::isnan(wanted[i])) &&
        !(std::abs(got[i] - wanted[i]) <= tolerance * size))
      return false;
  return true;
}

// Checks that two backends refuse a call alike, or give results of the same shapes, dtypes and values. The host does
// not read indices on a device, so a device gives NaN for indices out of range, which the wanted backend refuses.
inline void check_agreement(const Outcome& got, const Outcome& wanted, double tolerance) {
  const bool of_device =
      std::ranges::any_of(got.results, [](const Tensor& t) { return t.defined() && t.device() == Device::cuda; });
  if (of_device && wanted.message.find("expected indices in") != std::string::npos) return;
  INFO(got.message);
  INFO(wanted.message);
  CHECK(got.refused == wanted.refused);
  CHECK(got.results.size() == wanted.results.size());
  for (std::size_t i = 0; i < std::min(got.results.size(), wanted.results.size()); ++i) {
    const Tensor &a = got.results[i], &b = wanted.results[i];
    INFO("result " << i << ": " << describe(a) << " and " << describe(b));
    CHECK(a.defined() == b.defined());
    if (!a.defined() || !b.defined()) continue;
    CHECK(a.shape() == b.shape());
    CHECK(a.dtype() == b.dtype());
    const std::vector<double> values = a.values();
    CHECK(static_cast<std::int64_t>(values.size()) == Shape(std::span(a.shape().begin(), a.shape().end())).numel());
    CHECK(agree(values, b.values(), tolerance));
  }
}

}  // namespace plumb::test
