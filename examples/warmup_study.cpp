// A study with a custom training loop: does a warm-up help pre-norm at depth 24?
#include <plumb/plumb.h>
using namespace plumb;

int main(int argc, char** argv) {
  std::string gate = "pre";
  vision::Study study("warmup_study", "One gate at depth 24; compare --warmup 0 with --warmup 50.",
                      {.optimization = false});
  study.options().warmup = 0;
  study.cli().option("--gate", &gate, "Residual gate").one_of("gate", nn::method_names());
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = 24, .gate = gate}));  // other options: --dim, --pool, ...
    nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, trial.warmup(), trial.steps())});
    trial.track(model, optimizer);  // for checkpoints, --eval-every and --save-weights
    for (const vision::Batch& batch : vision::batches(trial)) {
      const double lr = optimizer.learning_rate();
      const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
      const Gradients g = backward(loss());
      if (trial.check_divergence(g, loss)) return;
      optimizer.step(g);
      trial.log({{"loss", g.loss()}, {"grad_norm", g.norm()}, {"lr", lr}});
    }
    trial.log(trial.evaluate());
  });
}
