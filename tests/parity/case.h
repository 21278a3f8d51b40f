// A reference case: a small problem with the answers of PyTorch or timm in f64, and the comparison of Plumb's answers.
//
// Tensors of a case: in.* are inputs; param.* are parameters before the call; out.* are answers; cot.y is the gradient
// fed into out.y (absent if out.loss is differentiated); grad.in.* and grad.param.* are gradients; step.N.* are the
// inputs of step N. The metadata entry "case" is a JSON object with the kind and the settings. The error of a tensor is
// its largest absolute difference / max(its largest entry, floor_share x the largest gradient of the case).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "nn/io/named_tensors.h"

namespace plumb::parity {

// Returns the larger number, or NaN if either is NaN.
double worse(double a, double b);

// The settings and the tensors of a case.
struct Case {
  nlohmann::json settings;
  nn::NamedTensors tensors;

  const std::string& kind() const { return settings.at("kind").get_ref<const std::string&>(); }
  bool has(const std::string& name) const { return tensors.contains(name); }
  // Returns a tensor of the case on the default device; floats get the default dtype. Throws Error with the name if the
  // case has no such tensor.
  Tensor tensor(const std::string& name) const;
  Tensor variable(const std::string& name) const { return plumb::variable(tensor(name)); }
  // Returns the names after a prefix: if the case has in.x and in.weight, names("in.") is x, weight.
  std::vector<std::string> names(const std::string& prefix) const;
};

// Reads a case from a .safetensors file.
Case read_case(const std::filesystem::path& file);

// The errors of a case on one backend.
struct Verdict {
  double output_error = 0, gradient_error = 0;  // NaN if an answer is NaN
  double reported_error = 0;                    // largest error of the tensors that are reported and not judged
  std::vector<std::string>
      failures;  // tensors with an error above the limit or without an answer; empty if the case passed
};

// Compares Plumb's answers to one case. Every out.* and grad.* of the case must be answered or reported exactly once.
class Judge {
 public:
  Judge(const Case& c, double output_limit, double gradient_limit, double floor_share = 1e-3);

  // Compares an answer, such as "out.y" or "grad.in.x"; an error above the limit is a failure.
  void answer(const std::string& name, const Tensor& ours);
  // Records the error of an answer without a limit.
  void report(const std::string& name, const Tensor& ours);
  // Answers the gradients of y (fed with cot.y) or of a scalar loss, with respect to inputs and parameters, which are
  // given under their names in the case.
  void gradients(const Tensor& y, const nn::NamedTensors& variables);
  Verdict finish();

 private:
  const Case& case_;
  double output_limit_, gradient_limit_, floor_ = 0;
  std::set<std::string> open_;  // answers that are still missing
  Verdict verdict_;
};

// Runs a case on the default device in the default dtype. Throws Error for an unknown kind,
// op, method, model or optimizer.
void run(const Case& c, Judge& judge);
void run_op(const Case& c, Judge& judge);
void run_attention(const Case& c, Judge& judge);
void run_stack(const Case& c, Judge& judge);
void run_model(const Case& c, Judge& judge);
void run_training(const Case& c, Judge& judge);
void run_optimizer(const Case& c, Judge& judge);
void run_clip(const Case& c, Judge& judge);

// Compares Plumb's factors, schedules, and block and cross masks with those of a tables.json. Returns one line for each
// difference.
std::vector<std::string> check_tables(const nlohmann::json& tables);

}  // namespace plumb::parity
