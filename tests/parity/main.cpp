// parity DIR: compares every case of a folder with the answers of PyTorch and timm: in f64 on the reference backend, in
// fp32 and with bf16 products on the other backends.
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

// A backend and a precision, with the limits of errors.
struct Target {
  const char* name;
  Defaults defaults;
  Precision products;
  double limit, gradient_limit;  // largest allowed errors of outputs and of gradients
  double training_limit;         // limit for losses of a training case, because rounding errors grow from step to step
  // Errors of small tensors are relative to at least this share of the largest gradient of the case.
  double floor_share;
  // An ill-conditioned case may have an error of cost_factor times the cost of rounding, if
  // that cost is below `hopeless`.
  double cost_factor, hopeless;
  bool judges_hopeless;  // whether a case with a larger cost fails; else the case is not judged
};
// All targets; cuda is included if there is a device.
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
    "Runs every case of DIR (*.safetensors, tables.json): in f64 on the reference backend, in fp32 and with bf16\n"
    "products on the other backends (on cuda if there is a device). Prints the worst error of outputs and of\n"
    "gradients: the largest difference / max(largest entry, 1e-3 x largest gradient of the case).\n"
    "\n"
    "Limits in f64: 1e-9; for losses of training runs 1e-8.\n"
    "\n"
    "Limits in fp32: 2e-4; for losses of training runs 1e-3. A case is ill-conditioned if rounding every stored\n"
    "number to fp32 costs more than a tenth of the limit. (The cost is the error of the reference backend in\n"
    "fp32, which sums in f64.) If the cost is below 1e-2, the limit of such a case is ten times the cost, and a\n"
    "note says so.\n"
    "\n"
    "Limits with bf16 products (f32 sums): 2e-2 for outputs, 1e-1 for gradients, 1e-2 for losses of training\n"
    "runs. Errors are relative to at least a tenth of the largest gradient of the case. An error of twice the\n"
    "cost of the same rounding on the reference backend is allowed, if that cost is below 0.5. Cases with a\n"
    "larger cost are not judged in bf16 and are counted separately.\n"
    "\n"
    "Final parameters of training runs are reported, not judged, because Adam turns the rounding of a zero\n"
    "gradient into a step.\n"
    "\n"
    "The last line is \"N passed, N failed\", followed by \", N of them not judged in bf16\" if there are such\n"
    "cases. The exit status is 1 if a case failed or is unknown, and 2 for a wrong command line.\n";

// The worst errors over all cases, by kind and target.
struct Worst {
  double output = 0, gradient = 0;
};
using WorstByKind = std::map<std::string, std::vector<Worst>>;

struct Result {
  std::string columns = {};
  std::vector<std::string> failures = {}, notes = {};
  bool unjudged = false;  // whether the case passed, but one target could not be judged
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
        result.notes.push_back(fmt::format(
            "{}: not judged, because rounding alone gives errors of {:.1e} in outputs and {:.1e} in gradients",
            target.name, rounding.output_error, rounding.gradient_error));
      } else if (target.cost_factor * cost > std::min(limit, gradient_limit) && cost < target.hopeless) {
        v = verdict_of(c, target.defaults, target, std::max(limit, target.cost_factor * rounding.output_error),
                       std::max(gradient_limit, target.cost_factor * rounding.gradient_error));
        result.notes.push_back(
            fmt::format("{}: ill-conditioned: rounding alone gives errors of {:.1e} in outputs and {:.1e} in "
                        "gradients; the limit is {} times these errors",
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
