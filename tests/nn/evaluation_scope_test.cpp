#include "nn/evaluation_scope.h"

#include "nn/child.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Part : nn::Module {};
struct Middle : nn::Module {
  nn::Child<Part> inner{this, "inner"};
};
struct Nested : nn::Module {
  nn::Child<Middle> first{this, "first"};
  nn::Child<Part> second{this, "second"};
  std::vector<bool> modes() {
    std::vector<bool> modes;
    each_module([&](nn::Module& m) { modes.push_back(m.training()); });
    return modes;
  }
};

const std::vector<bool> evaluation(4, false);

}  // namespace

TEST_CASE("an evaluation scope restores the mode of every module") {
  // Tries all combinations of modes of the modules model, first, first.inner and second. In some combinations, a parent
  // and its child have different modes.
  for (unsigned modes = 0; modes < 16; ++modes) {
    INFO(modes);
    Nested model;
    model.train(modes & 1), model.first.train(modes & 2), model.first.inner.train(modes & 4);
    model.second.train(modes & 8);
    const std::vector<bool> before = model.modes();
    {
      const nn::EvaluationScope scope(model);
      CHECK(model.modes() == evaluation);
      {
        const nn::EvaluationScope nested(model.first);
        CHECK(model.modes() == evaluation);
      }
      CHECK(model.modes() == evaluation);
    }
    CHECK(model.modes() == before);
  }
}

TEST_CASE("an evaluation scope of a part leaves the rest of the model in training mode") {
  Nested model;
  {
    const nn::EvaluationScope scope(model.first);
    CHECK(model.modes() == std::vector<bool>{true, false, false, true});
  }
  CHECK(model.modes() == std::vector<bool>(4, true));
}

TEST_CASE("modes are restored if an exception leaves an evaluation scope") {
  Nested model;
  model.second.eval();
  CHECK_THAT(error_of([&] {
               const nn::EvaluationScope scope(model);
               fail("[model] as it should be");
             }),
             contains("as it should be"));
  CHECK(model.modes() == std::vector<bool>{true, true, true, false});
}
