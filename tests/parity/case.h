// A reference case: a small problem with PyTorch's or timm's answers in f64, and how ours are judged.
//
// Tensors: in.* inputs, param.* parameters before the call, out.* answers, cot.y the gradient fed into out.y (absent
// where out.loss is differentiated), grad.in.*, grad.param.* gradients, step.N.* what is fed in at step N. The metadata
// entry "case" is a JSON object: kind and settings. Error of a tensor = largest absolute difference / max(its largest
// entry, floor_share x the largest gradient of the case).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "nn/named_tensors.h"

namespace plumb::parity {

// The larger one; NaN if either is.
double worse(double a, double b);

struct Case {
  nlohmann::json settings;
  nn::NamedTensors tensors;

  const std::string& kind() const { return settings.at("kind").get_ref<const std::string&>(); }
  bool has(const std::string& name) const { return tensors.contains(name); }
  // On the default device, floats in the default dtype; throws, naming it, for one that the case lacks.
  Tensor tensor(const std::string& name) const;
  Tensor variable(const std::string& name) const { return plumb::variable(tensor(name)); }
  // Names after a prefix: names("in.") of in.x and in.weight is x, weight.
  std::vector<std::string> names(const std::string& prefix) const;
};

Case read_case(const std::filesystem::path& file);

// What is still wrong after a case ran on one backend.
struct Verdict {
  double output_error = 0, gradient_error = 0;  // NaN if an answer is
  double reported_error = 0;                    // of what is not judged
  std::vector<std::string> failures;            // tensors beyond the limit, or that nobody computed; empty: passed
};

// Collects our answers to one case. Every out.* and grad.* of the case must be given once.
class Judge {
 public:
  Judge(const Case& c, double output_limit, double gradient_limit, double floor_share = 1e-3);

  void answer(const std::string& name, const Tensor& ours);  // "out.y", "grad.in.x"
  void report(const std::string& name, const Tensor& ours);  // the same, not judged
  // The gradients of y (fed cot.y) or of a scalar loss, for inputs and parameters given under their names in the case.
  void gradients(const Tensor& y, const nn::NamedTensors& variables);
  Verdict finish();

 private:
  const Case& case_;
  double output_limit_, gradient_limit_, floor_ = 0;
  std::set<std::string> open_;  // answers that are still missing
  Verdict verdict_;
};

// Runs the case on the default device in the default dtype. Throws for a kind, op, method, model or optimizer that is
// not known.
void run(const Case& c, Judge& judge);
void run_op(const Case& c, Judge& judge);
void run_attention(const Case& c, Judge& judge);
void run_stack(const Case& c, Judge& judge);
void run_model(const Case& c, Judge& judge);
void run_training(const Case& c, Judge& judge);
void run_optimizer(const Case& c, Judge& judge);
void run_clip(const Case& c, Judge& judge);

// Factors, schedules and structured masks of a tables.json against ours: what differs, one line each.
std::vector<std::string> check_tables(const nlohmann::json& tables);

}  // namespace plumb::parity
