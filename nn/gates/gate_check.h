// Checks on small networks that a residual method fulfils the rules for all methods. check_gate() needs only the name
// of the method.
//
//   nn::register_gate<TanhGate>("tanh_gate", {...});
//   const nn::GateReport report = nn::check_gate("tanh_gate");   // report.passed(), report.text()
//
// The option --check-gates of the study depth_stability runs these checks, also in a program that adds custom gates.
#pragma once

#include <string>
#include <vector>

#include "nn/gates/gate.h"

namespace plumb::nn {

// The result of one rule.
struct RuleResult {
  std::string rule;
  bool passed;
  std::string detail;  // the measured value, or the failure and its remedy
};

// The results of all rules for one method.
struct GateReport {
  std::string gate;
  std::vector<RuleResult> rules;

  // Returns whether every rule passed.
  bool passed() const;
  // Returns the report as text, with one line for each rule.
  std::string text() const;
};

// Options of check_gate().
struct CheckGateOptions {
  // The training steps of the rules "steps" and "gradients". All other rules begin at the first of these steps.
  std::vector<std::uint32_t> steps = {0, 10, 1000};
};

// clang-format off
// Checks a method. The check takes well below a second, and writes and removes one temporary file. The rules, in order:
//   builds               a block can be built; gate and last layer do not both start at 0
//   registered           every variable that gets a gradient is a parameter of the model, so that no tensor is made
//                        without parameter() and no child() is forgotten
//   gradients            first-order gradients in f64 agree with finite differences; all parameters are moved away from
//                        special values such as 0 and 1 before
//   second order         gradients of gradients agree, too; skipped if the first-order gradients are wrong
//   identity at init, zero branch gradient, loss ln(classes)
//                        the properties that the method claims hold; a property that it does not claim is only reported
//   initial values       the parameters have the values that they declare (audit_init), also after passes that must not
//                        change anything
//   roles                no parameter of a gate decays
//   learning             a few steps move every parameter of the block
//   stochastic depth     the term that the gate adds is proportional to the factor of the sample; if all samples are
//                        dropped, the branches have no effect. The difference between a dropped sample and its skip is
//                        reported
//   fused sum            combine() is the sum that plain_scale() states, which the block computes in its place
//   checkpoint           computing blocks again in the backward pass gives the same output, bit for bit, and the same
//                        gradients
//   junctions            blocks of one junction (MLP), of three junctions (MLP, attention, MLP), and of the decoder of
//                        a DETR (attention, attention to a memory, MLP; with positions) can be built, give finite
//                        values, train every parameter in a few steps, and pass the rule "checkpoint". A method that
//                        has no form for such blocks may refuse them: Method::build throws an Error that contains
//                        "expected blocks", and the report says "not applicable"
//   devices and dtypes   reference f64, cpu f64 and cpu f32 agree in values and gradients
//   samples              in evaluation, the output for a sample does not depend on the other samples of its batch
//   save and load        another model that loads the file of a calibrated model gives the same outputs, bit for bit
//   steps                at several training steps, the network is finite, and evaluation computes what training
//                        computed; a gate that draws random numbers in training is not compared with evaluation.
//                        Evaluation does not depend on the step of the open RandomScope, also for a gate that draws
//   depth                48 blocks give finite values and gradients in f32
//   bf16                 never fails; reports how much of the stream would not change in bf16
//   documented           formula and source are given
// clang-format on
// If a rule fails with the same error as an earlier rule, the report does not list the later rule. The entry of the
// earlier rule states the number of such rules. Throws Error if `steps` is empty.
GateReport check_gate(const GateChoice& method, const CheckGateOptions& options = {});

// The share of the elements of `stream` that do not change when `added` is added to them and both terms and the sum are
// rounded to bf16. Elements with an `added` of 0 do not count as unchanged. Throws Error if the sizes differ or are 0.
double unchanged_in_bf16(const std::vector<double>& stream, const std::vector<double>& added);

}  // namespace plumb::nn
