// A study that uses former names of headers, types and functions. The former names must compile for one more version.
#include <plumb/experiments/common/arm.h>
#include <plumb/experiments/common/passport.h>
#include <plumb/experiments/common/section.h>
#include <plumb/experiments/common/study.h>
#include <plumb/plumb.h>

using namespace plumb;

int former_names(int argc, char** argv) {
  lab::Study study("former_names", "Does a study with former names still compile?");
  const auto gate = study.axis<std::string>("--gates", nn::gate_names(), "Gates").one_of_methods("gate");
  lab::RunOptions& options = study.options();
  options.steps = 3;
  study.derive([&] { options.batch = 4; });
  study.instead([]() -> std::optional<int> { return std::nullopt; });
  study.section([](const lab::StudyResults&) { return lab::Section{.title = "A custom section"}; });
  study.file("layers.csv", lab::layers_csv);
  return study.run(argc, argv, [&](lab::Arm& arm) {
    nn::ViT model(arm.vit({.depth = 2, .gate = arm[gate]}));
    arm.is_trained();
    nn::Sgd optimizer(model.parameters(), {.lr = 0.1});
    arm.track(model, optimizer);
    for (const lab::Batch& batch : arm.batches()) {
      const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
      lab::PassportProbe probe(model.stack());
      const Gradients g = backward(loss());
      if (arm.diverges(g, loss)) return;
      const lab::Passport passport = probe.finish(g);
      if (passport.branches.empty()) arm.diverged(0, "no branches");
      optimizer.step(g);
      arm.log({{"loss", g.loss()}});
    }
  });
}
