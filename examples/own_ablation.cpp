// An ablation in one file: does the initial value of LayerScale matter?
#include <plumb/vision.h>
using namespace plumb;

int main(int argc, char** argv) {
  vision::Study study("own_ablation",
                      "Does the initial value of LayerScale matter, and does it matter more in deeper networks?");
  const auto depth = study.depths({12, 24, 48});
  const auto epsilon = study.axis("--epsilons", {0.0, 1e-6, 1e-4, 0.1}, "Initial value").at_least(0);
  for (const int d : {12, 24, 48})
    study.claim(fmt::format("at depth {}, 1e-6 trains better than 0", d), "CaiT, table 1",
                lower(lab::train_loss, epsilon == 1e-6, epsilon == 0).at(depth == d));
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .method = nn::methods::layerscale(trial[epsilon])}));
    trial.train(model);
  });
}
