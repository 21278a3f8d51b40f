// Tutorial, page 4: an ablation with three claims. How small may the initial value of LayerScale be?
#include <plumb/vision.h>
using namespace plumb;

int main(int argc, char** argv) {
  vision::Study study("tutorial_4_ablation", "How small may the initial value of LayerScale be?");
  const auto depth = study.depths({12});
  const auto init = study.axis("--inits", {0.0, 1e-6, 0.1}, "Initial values of LayerScale").at_least(0);
  study.defaults({.steps = 300, .lr = 3e-3});

  study.claim("0.1 trains better than 1e-6", "CaiT starts LayerScale at 0.1 in up to 18 blocks",
              lower(lab::train_loss, init == 0.1, init == 1e-6));
  study.claim("1e-6 trains better than 0", "at 0 the branches get no gradient in the first step",
              lower(lab::train_loss, init == 1e-6, init == 0));
  study.claim("0 trains as well as 1e-6, within 0.05", "the optimizer moves both away in its first step",
              not_higher(lab::train_loss, init == 0, init == 1e-6, 0.05));

  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = trial[depth], .method = nn::methods::layerscale(trial[init])}));
    trial.train(model);
  });
}
