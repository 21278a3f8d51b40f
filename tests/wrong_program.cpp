// Programs whose mistakes are outside of Study::run. The first argument selects the mistake. tests/programs runs these
// programs.
#include <plumb/vision.h>

#include <cstdlib>
#include <thread>
using namespace plumb;

namespace {

struct Plain : nn::Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
};

const bool at_namespace_scope = [] {
  // "pre" is already the name of a method.
  if (std::getenv("WRONG_AT_NAMESPACE_SCOPE")) nn::register_method<Plain>("pre");
  return true;
}();

}  // namespace

int main(int argc, char** argv) {
  std::printf("begun\n");
  const std::string wrong = argc > 1 ? argv[1] : "";
  vision::Study study("wrong", "Wrong.", {.network = false, .optimization = false});
  study.axis<int>("--depths", {1, 2}, "Depths");
  if (wrong == "axis") study.axis<int>("--depths", {1, 2}, "Depths");
  if (wrong == "gate") nn::register_method<Plain>("pre");
  if (wrong == "option") study.cli().option("--help", &study.options().out, "Help");
  if (wrong == "usage") lab::usage_check(false, "not so");
  if (wrong == "tensor") ones({2, 3}) + ones({4, 5});
  if (wrong == "standard") (void)std::stod("x");
  if (wrong == "thread") std::thread([] { fail("in a thread,\n    of two lines"); }).join();
  if (wrong == "own handler") std::set_terminate([] { std::_Exit(7); }), fail("x");
  if (wrong == "other") throw 1;
  return study.run(1, argv, [](lab::Trial&) {});
}
