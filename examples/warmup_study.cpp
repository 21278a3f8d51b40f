// A study with a custom training loop: does a warm-up help pre-norm at depth 24?
#include <plumb/vision.h>
using namespace plumb;

int main(int argc, char** argv) {
  std::string gate = "pre";
  vision::Study study("warmup_study", "One gate at depth 24; compare --warmup 0 with --warmup 50.",
                      {.optimization = false});
  study.defaults({.warmup = 0});
  study.cli().option("--gate", &gate, "Residual gate").one_of_methods();
  return study.run(argc, argv, [&](vision::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = 24, .method = gate}));  // other options: --dim, --pool, ...
    nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, trial.warmup(), trial.steps())});
    for (vision::Step& step : trial.loop(model, optimizer)) {
      const vision::Batch& batch = step.batch();
      step.minimise([&] { return cross_entropy(model(batch.images), batch.labels); });
    }
    trial.measure({{"train_loss", trial.recent_loss()}});
    trial.measure(trial.evaluate());
  });
}
