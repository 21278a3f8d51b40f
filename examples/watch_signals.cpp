// Measures signals inside a network while it trains: a probe every 50 steps of a custom training loop.
#include <plumb/vision.h>
using namespace plumb;

int main(int argc, char** argv) {
  vision::Study study("watch_signals", "Signals in a pre-norm network of 24 blocks.",
                      {.network = false, .optimization = false});
  return study.run(argc, argv, [](vision::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = 24, .method = "pre"}));
    nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, 0, trial.steps())});
    for (vision::Step& step : trial.loop(model, optimizer)) {
      const vision::Batch& batch = step.batch();
      std::optional<lab::SignalProbe> probe;
      if (step.number() % 50 == 0) probe.emplace(model.stack());  // measures this step
      const Gradients& g = step.minimise([&] { return cross_entropy(model(batch.images), batch.labels); });
      if (!probe) continue;
      const lab::LayerStats layers = probe->finish(g);
      const lab::BranchStats &first = layers.branches[0], &last = layers.branches.back();
      trial.log({{"first_gradient", first.grad_norm},
                 {"first_entropy", *first.entropy},
                 {"last_ratio", last.ratio},
                 {"last_update", last.update.value_or(0)}});
    }
  });
}
