// Compares how an optimizer treats every parameter of every method with tests/golden/groups.txt. If a factor changes by
// accident, results change, but no other test fails. After an intended change, or for a new method, run this test. The
// failure message names the file that the test wrote, and the command that copies this file.
#include <map>

#include "core/atomic_file.h"
#include "plumb/plumb.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

std::string listed(const std::string& what, const std::vector<std::string>& names) {
  return names.empty() ? "" : fmt::format("{}\n  {}\n", what, fmt::join(names, "\n  "));
}

// Lists the parameters of a small ViT with the method and its paper's recipe: names grouped by factor, in the order of
// registration. The ViT is deeper than the base depth of depth_mup, because at the base depth all factors are 1. The
// list has only the number of the parameters without decay and without a factor, so that a new parameter changes the
// list too.
std::string groups_of(const std::string& gate) {
  const nn::Method method = nn::method_named(gate);
  const nn::ViT model({.image = 8,
                       .patch = 4,
                       .classes = 3,
                       .dim = 8,
                       .depth = 3,
                       .heads = 2,
                       .mlp_ratio = 2,
                       .method = gate,
                       .pool = nn::Pool::token,
                       .recipe = method.paper});
  std::vector<std::string> decayed;
  std::map<std::string, std::vector<std::string>> factored;
  std::size_t others = 0;
  for (const nn::Parameter& p : model.parameters()) {
    std::string factors;
    if (p.lr_factor() != 1) factors += fmt::format(" rate x {:.6g}", p.lr_factor());
    if (p.eps_factor() != 1) factors += fmt::format(" eps x {:.6g}", p.eps_factor());
    if (p.decay_factor() > 0)
      decayed.push_back(p.name + (p.decay_factor() != 1 ? fmt::format(" x {:.6g}", p.decay_factor()) : ""));
    if (!factors.empty()) factored[factors.substr(1)].push_back(p.name);
    others += factors.empty() && !(p.decay_factor() > 0);
  }
  std::string text = fmt::format("== {}\n{}", gate, listed("decay", decayed));
  for (const auto& [factors, names] : factored) text += listed(factors, names);
  return text + fmt::format("others: {}\n", others);
}

}  // namespace

TEST_CASE("the decaying parameters and the learning-rate and eps factors of every method are as recorded") {
  std::string text =
      "# For every method: the parameters of a ViT of three blocks, under its paper's recipe, that decay, and those "
      "whose rate or eps has a factor.\n"
      "# Written by tests/nn/groups_test.cpp, which says how to take over a change.\n";
  REQUIRE(built_in_gates.size() >= 31);
  for (const std::string& gate : built_in_gates) text += groups_of(gate);
  const std::filesystem::path golden = std::filesystem::path(test::source_dir()) / "tests/golden/groups.txt",
                              actual = std::filesystem::path(test::binary_dir()) / "groups.txt";
  const std::string expected = std::filesystem::exists(golden) ? read_file(golden) : "";
  if (text == expected) {
    SUCCEED();
    return;
  }
  write_file_atomically(actual, text);
  FAIL("the groups differ: look at\n  diff " << golden.string() << " " << actual.string()
                                             << "\nand if the change is intended, run\n  cp " << actual.string() << " "
                                             << golden.string());
}
