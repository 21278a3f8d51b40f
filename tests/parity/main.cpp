// parity DIR: every case of a folder against PyTorch's and timm's answers, in f64 on the reference backend, in fp32 and
// with bf16 products on every other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/array.h"
#include "core/backend.h"
#include "core/precision.h"
#include "tests/parity/case.h"

namespace {

using namespace plumb;
using namespace plumb::parity;
namespace fs = std::filesystem;

struct Target {
  const char* name;
  Defaults defaults;
  Precision products;
  double limit, gradient_limit;  // largest error of outputs and of gradients
  double training_limit;         // of the losses of a training case, whose rounding grows from step to step
  double floor_share;            // of the case's largest gradient, which errors of smaller tensors are relative to
  double cost_factor, hopeless;  // ill-conditioned cases may have so many times the cost of rounding, up to this cost
  bool judges_hopeless;          // whether cases beyond it fail; else nothing is said of them
};
// Those of cuda where there is a device.
const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> found{
        {"reference f64", {DType::f64, Device::reference}, Precision::f32, 1e-9, 1e-9, 1e-8, 1e-3, 0, 0, true}};
    const auto add = [&](const char* fp32, const char* bf16, Device device) {
      found.push_back({fp32, {DType::f32, device}, Precision::f32, 2e-4, 2e-4, 1e-3, 1e-3, 10, 1e-2, true});
      found.push_back({bf16, {DType::f32, device}, Precision::bf16, 2e-2, 1e-1, 1e-2, 1e-1, 2, 0.5, false});
    };
    add("cpu fp32", "cpu bf16", Device::cpu);
    if (why_no_cuda().empty()) add("cuda fp32", "cuda bf16", Device::cuda);
    return found;
  }();
  return all;
}

constexpr const char* usage =
    "usage: parity DIR\n"
    "\n"
    "Runs every case (*.safetensors, tables.json) of DIR in f64 on the reference backend, in fp32 and with bf16 "
    "products on every other that is "
    "there (cuda: where a device is), and prints "
    "the worst\n"
    "error of outputs and of gradients: largest difference / max(largest entry, 1e-3 x largest gradient of the case).\n"
    "Limits: f64 1e-9 (losses of training runs 1e-8), fp32 2e-4 (1e-3). Where the case is ill-conditioned, so that "
    "rounding every stored number to\n"
    "fp32 costs more than a tenth of that (measured: the reference backend in fp32, which sums in f64), ten times the "
    "cost is the limit, and said, "
    "up to a cost of 1e-2.\n"
    "In bf16 products (f32 sums) the limits are 2e-2 for outputs, 1e-1 for gradients, 1e-2 for losses of training "
    "runs, and errors are relative to "
    "at\n"
    "least a tenth of the case's largest gradient; twice what the same rounding costs the reference backend is "
    "allowed, up to a cost of 0.5; cases\n"
    "that it costs more are not judged in bf16, and counted apart.\n"
    "Final parameters of training runs are reported, not judged: Adam makes steps of the rounding of a zero gradient.\n"
    "Ends with \"N passed, N failed\", and \", N of them not judged in bf16\" where there are such; exits 1 if a case "
    "failed or is not known, 2 for "
    "a wrong command line.\n";

// By kind and target, over all cases.
struct Worst {
  double output = 0, gradient = 0;
};
using WorstByKind = std::map<std::string, std::vector<Worst>>;

struct Result {
  std::string columns = {};
  std::vector<std::string> failures = {}, notes = {};
  bool unjudged = false;  // passed, but for a target that says nothing of it
};

Verdict verdict_of(const Case& c, const Defaults& defaults, const Target& target, double output_limit,
                   double gradient_limit) {
  const DefaultsScope scope(defaults);
  const PrecisionScope precision(target.products);
  Judge judge(c, output_limit, gradient_limit, target.floor_share);
  run(c, judge);
  return judge.finish();
}

Result run_case(const fs::path& file, WorstByKind& worst) {
  Result result;
  const Case c = read_case(file);
  const bool training = c.kind() == "training";
  std::vector<Worst>& of_kind = worst.try_emplace(c.kind(), targets().size()).first->second;
  for (std::size_t i = 0; i < targets().size(); ++i) {
    const Target& target = targets()[i];
    const double limit = training ? target.training_limit : target.limit,
                 gradient_limit = training ? limit : target.gradient_limit;
    Verdict v = verdict_of(c, target.defaults, target, limit, gradient_limit);
    if (!v.failures.empty() && target.cost_factor > 0) {
      const Verdict rounding = verdict_of(c, {DType::f32, Device::reference}, target, limit, gradient_limit);
      const double cost = worse(rounding.output_error, rounding.gradient_error);
      if (!target.judges_hopeless && !(cost < target.hopeless)) {
        std::erase_if(v.failures, [](const std::string& f) {
          return f.find(" above ") != std::string::npos && f.find("nan") == std::string::npos;
        });
        result.unjudged = true;
        result.notes.push_back(
            fmt::format("{}: not judged: rounding alone costs {:.1e} of outputs and {:.1e} of gradients", target.name,
                        rounding.output_error, rounding.gradient_error));
      } else if (target.cost_factor * cost > std::min(limit, gradient_limit) && cost < target.hopeless) {
        v = verdict_of(c, target.defaults, target, std::max(limit, target.cost_factor * rounding.output_error),
                       std::max(gradient_limit, target.cost_factor * rounding.gradient_error));
        result.notes.push_back(fmt::format(
            "{}: ill-conditioned, rounding alone costs {:.1e} of outputs and {:.1e} of gradients; limit {} times that",
            target.name, rounding.output_error, rounding.gradient_error, target.cost_factor));
      }
    }
    result.columns += fmt::format("  {:8.1e} {:8.1e}", v.output_error, v.gradient_error);
    if (training)
      result.notes.push_back(fmt::format("{}: final parameters differ by {:.1e}", target.name, v.reported_error));
    of_kind[i].output = worse(of_kind[i].output, v.output_error);
    of_kind[i].gradient = worse(of_kind[i].gradient, v.gradient_error);
    for (const std::string& f : v.failures) result.failures.push_back(fmt::format("{}, {}", target.name, f));
  }
  return result;
}

Result run_tables(const fs::path& file) {
  std::ifstream in(file);
  return {.columns = std::string(19 * targets().size(), ' '),
          .failures = check_tables(nlohmann::json::parse(in)),
          .notes = {}};
}

int run_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" || entry.path().filename() == "tables.json")
      files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.empty()) {
    fmt::print(stderr, "error: expected cases (*.safetensors, tables.json) in {}, got none\n", folder.string());
    return 1;
  }
  fmt::print("{:<34}", "");
  for (const Target& t : targets()) fmt::print("  {:<17}", t.name);
  fmt::print("\n{:<34}", "worst error of");
  for ([[maybe_unused]] const Target& t : targets()) fmt::print("  {:<8} {:<8}", "output", "gradient");
  fmt::print("\n");

  WorstByKind worst;
  int passed = 0, failed = 0, unjudged = 0;
  for (const fs::path& file : files) {
    Result result;
    try {
      result = file.filename() == "tables.json" ? run_tables(file) : run_case(file, worst);
    } catch (const std::exception& e) {
      result.failures.push_back(e.what());
    }
    fmt::print("{:<34}{}  {}\n", file.stem().string(), result.columns, result.failures.empty() ? "ok" : "FAILED");
    for (const std::string& f : result.failures) fmt::print("    {}\n", f);
    for (const std::string& n : result.notes) fmt::print("    {}\n", n);
    ++(result.failures.empty() ? passed : failed);
    unjudged += result.unjudged && result.failures.empty();
  }
  fmt::print("\n");
  for (const auto& [kind, errors] : worst) {
    fmt::print("worst of {:<25}", kind);
    for (const Worst& w : errors) fmt::print("  {:8.1e} {:8.1e}", w.output, w.gradient);
    fmt::print("\n");
  }
  fmt::print("{} passed, {} failed{}\n", passed, failed,
             unjudged ? fmt::format(", {} of them not judged in bf16", unjudged) : "");
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "";
  if (argument == "--help" || argument == "-h") {
    fmt::print("{}", usage);
    return 0;
  }
  if (argc != 2 || argument.starts_with("-")) {
    fmt::print(stderr, "error: expected one folder, got {}\n\n{}",
               argc == 2 ? argument : fmt::format("{} arguments", argc - 1), usage);
    return 2;
  }
  if (!fs::is_directory(argument)) {
    fmt::print(stderr, "error: expected a folder of cases, got {}\n", argument);
    return 1;
  }
  return run_folder(argument);
}
