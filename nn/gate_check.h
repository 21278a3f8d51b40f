// The conformance kit: what every residual method must fulfil, checked on small networks from its name alone.
//
//   nn::register_gate<TanhGate>("tanh_gate", {...});
//   const nn::GateReport report = nn::check_gate("tanh_gate");   // report.passed(), report.text()
//
// depth_stability --check-gates does so for any program that has gates of its own.
#pragma once

#include <string>
#include <vector>

#include "nn/gates/gate.h"

namespace plumb::nn {

struct RuleResult {
  std::string rule;
  bool passed;
  std::string detail;  // the measure, or what went wrong
};

struct GateReport {
  std::string gate;
  std::vector<RuleResult> rules;

  bool passed() const;
  std::string text() const;  // one line a rule
};

// clang-format off
// The rules, in order:
//   builds               a block can be built; gate and last layer do not both start at 0
//   registered           every variable that gets a gradient is a parameter of the model: none is made past
//                        parameter(), no child() forgotten
//   gradients            of order one, f64, against finite differences, parameters off their special values
//   second order         gradients of the gradients, likewise; left out while those of order one are wrong
//   identity at init, zero branch gradient, loss ln(classes)
//                        what the method claims holds; what it does not claim is only reported
//   initial values       the model is what its parameters declare (audit_init), also after passes that should change
//                        nothing
//   roles                no parameter of a gate decays
//   learning             a few steps move every parameter of the block
//   stochastic depth     what is added is in proportion to the sample's factor; where all samples are dropped,
//                        branches do not matter. By how much a dropped sample differs from its skip is reported
//   checkpoint           recomputing blocks gives the same gradients
//   devices and dtypes   reference f64, cpu f64 and cpu f32 agree, values and gradients
//   save and load        a calibrated model's file gives another model its outputs, bit for bit
//   depth                48 blocks give finite values and gradients in f32
//   bf16                 reported, never failed: how much of the stream would not change in bf16
//   documented           formula and source are there
// clang-format on
// A rule that ends in the error of one before it is not listed again: that one says in how many rules it came.
// Takes well below a second. Writes one temporary file.
GateReport check_gate(const GateChoice& method);

// The share of elements of `stream` that adding `added` leaves as they are when both and the sum are rounded to bf16.
double unchanged_in_bf16(const std::vector<double>& stream, const std::vector<double>& added);

}  // namespace plumb::nn
