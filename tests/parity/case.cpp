#include "tests/parity/case.h"

#include <cmath>

#include "nn/io/safetensors.h"
#include "plumb/plumb.h"

namespace plumb::parity {

double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

Tensor Case::tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  check(found != tensors.end(), "expected the case to hold {}, got none", name);
  const Tensor& t = found->second;
  if (is_float(t.dtype())) return plumb::tensor(t.values(), t.shape());
  if (t.dtype() == DType::i64)
    return Tensor(array_from(std::span(t.array().data<std::int64_t>(), static_cast<std::size_t>(t.numel())), t.shape(),
                             defaults().device));
  return Tensor(array_from(std::span(t.array().data<std::uint8_t>(), static_cast<std::size_t>(t.numel())), t.shape(),
                           defaults().device));
}

std::vector<std::string> Case::names(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : tensors)
    if (name.starts_with(prefix)) found.push_back(name.substr(prefix.size()));
  return found;
}

Case read_case(const std::filesystem::path& file) {
  nn::TensorFile content = nn::read_safetensors(file);
  check(content.metadata.contains("case"), "expected a metadata entry \"case\", got none");
  return {nlohmann::json::parse(content.metadata.at("case")), std::move(content.tensors)};
}

Judge::Judge(const Case& c, double output_limit, double gradient_limit, double floor_share)
    : case_(c), output_limit_(output_limit), gradient_limit_(gradient_limit) {
  for (const auto& [name, value] : c.tensors) {
    if (name.starts_with("out.") || name.starts_with("grad.")) open_.insert(name);
    if (name.starts_with("grad."))
      for (double v : value.values()) floor_ = std::max(floor_, floor_share * std::abs(v));
  }
}

namespace {

double error_of(const std::vector<double>& ours, const std::vector<double>& theirs, double floor) {
  double difference = 0, size = floor;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    difference = worse(difference, std::abs(ours[i] - theirs[i]));
    size = std::max(size, std::abs(theirs[i]));
  }
  return difference == 0 ? 0 : difference / size;
}

}  // namespace

void Judge::answer(const std::string& name, const Tensor& ours) {
  check(open_.erase(name) == 1, "expected a tensor that the case asks for and that was not given before, got {}", name);
  const Tensor& theirs = case_.tensors.at(name);
  const bool is_gradient = name.starts_with("grad.");
  const double limit = is_gradient ? gradient_limit_ : output_limit_;
  if (ours.numel() != theirs.numel()) {
    verdict_.failures.push_back(fmt::format("{}: expected {}, got {}", name, theirs.shape(), ours.shape()));
    return;
  }
  const double error = error_of(ours.values(), theirs.values(), floor_);
  double& worst = is_gradient ? verdict_.gradient_error : verdict_.output_error;
  worst = worse(worst, error);
  if (!(error <= limit)) verdict_.failures.push_back(fmt::format("{}: error {:.2g} above {:.2g}", name, error, limit));
}

void Judge::report(const std::string& name, const Tensor& ours) {
  check(open_.erase(name) == 1, "expected a tensor that the case asks for and that was not given before, got {}", name);
  const Tensor& theirs = case_.tensors.at(name);
  check(ours.numel() == theirs.numel(), "expected {} {}, got {}", name, theirs.shape(), ours.shape());
  verdict_.reported_error = worse(verdict_.reported_error, error_of(ours.values(), theirs.values(), floor_));
}

void Judge::gradients(const Tensor& y, const nn::NamedTensors& variables) {
  Tensors xs;
  for (const auto& [name, x] : variables) xs.push_back(x);
  const Tensors g =
      grad(y, xs, {.cotangent = case_.has("cot.y") ? reshape(case_.tensor("cot.y"), y.shape()) : Tensor()});
  std::size_t i = 0;
  for (const auto& [name, x] : variables) answer("grad." + name, g[i++]);
}

Verdict Judge::finish() {
  for (const std::string& name : open_) verdict_.failures.push_back(name + ": not computed");
  return verdict_;
}

void run(const Case& c, Judge& judge) {
  const std::map<std::string, void (*)(const Case&, Judge&)> kinds{
      {"op", run_op},       {"attention", run_attention}, {"stack", run_stack},
      {"model", run_model}, {"training", run_training},   {"optimizer", run_optimizer},
      {"clip", run_clip}};
  const auto kind = kinds.find(c.kind());
  check(kind != kinds.end(), "expected a known kind, got \"{}\"", c.kind());
  kind->second(c, judge);
}

}  // namespace plumb::parity
