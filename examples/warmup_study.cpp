// An experiment with a custom training loop: does a warm-up help pre-norm at depth 24?
#include <plumb/plumb.h>
using namespace plumb;

int main(int argc, char** argv) {
  std::string gate = "pre";
  const auto declare = [&](lab::Cli& cli) {
    cli.option("--gate", &gate, "Residual gate").one_of("gate", nn::method_names());
  };
  return lab::experiment(argc, argv,
                         {.name = "warmup_study",
                          .summary = "One gate at depth 24; compare --warmup 0 with --warmup 50.",
                          .declare = declare,
                          .network = true},
                         [&](lab::Run& run) {
                           nn::ViT model(run.vit({.depth = 24, .gate = gate}));  // other options: --dim, --pool, ...
                           nn::AdamW optimizer(model.parameters(),
                                               {.lr = nn::warmup_cosine(1e-3, run.warmup(), run.steps())});
                           run.track(model, optimizer);  // for checkpoints, --eval-every and --save-weights
                           for (const lab::Batch& batch : run.batches()) {
                             const double lr = optimizer.learning_rate();
                             const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
                             const Gradients g = backward(loss());
                             if (run.check_divergence(g, loss)) return;
                             optimizer.step(g);
                             run.log({{"loss", g.loss()}, {"grad_norm", g.norm()}, {"lr", lr}});
                           }
                           run.log(run.evaluate());
                         });
}
