// A custom training loop: layer-wise learning rates, a hook, early stopping on the validation loss, and the best
// weights restored at the end.
#include <plumb/vision.h>

#include <cmath>
using namespace plumb;

int main(int argc, char** argv) {
  vision::Study study("own_loop", "Layer-wise learning rates and early stopping.",
                      {.network = false, .optimization = false});
  return study.run(argc, argv, [](vision::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = 6}));
    // The last block has the full learning rate. Each earlier block has 0.8 of the next block's learning rate, and
    // the embedding has the lowest learning rate.
    for (std::size_t i = 0; i < 6; ++i)
      model.stack().blocks()[i].each_parameter(
          [&](const std::string&, nn::Parameter& p) { p.lr_factor() *= std::pow(0.8, 5 - i); });
    model.each_parameter([](const std::string& name, nn::Parameter& p) {
      if (name.starts_with("patch_embed.") || name == "pos_embed") p.lr_factor() *= std::pow(0.8, 6);
    });
    nn::AdamW optimizer(model.parameters(), {.lr = 1e-3});
    fmt::print("{}", optimizer.describe_groups());
    const vision::ImageProblem& images = vision::images(trial);
    double gradient = 0;
    const Handle hook =
        model.stack().blocks()[0].on_backward([&](const nn::Layer&, const Tensor& g) { gradient = norm(g).item(); });

    const auto best_weights = trial.folder() / fmt::format("best-{}.safetensors", trial.seed());
    double best = INFINITY;
    for (int patience = 3; vision::Step & step : trial.loop(model, optimizer)) {
      const vision::Batch& batch = step.batch();
      step.minimise([&] { return cross_entropy(model(batch.images), batch.labels); });
      trial.log({{"first_block_gradient", gradient}});
      const std::int64_t taken = step.number() + 1;
      if (taken % 20 != 0 && taken != trial.steps()) continue;
      const double loss = vision::evaluate(model, images.data().validation, images.normalization()).loss;
      trial.log({{"val_loss", loss}});
      patience = loss < best ? 3 : patience - 1;
      if (loss < best) best = loss, nn::save_weights(model, best_weights);
      if (patience == 0) break;
    }
    nn::load_weights(model, best_weights);
    trial.log({{"val_accuracy", vision::evaluate(model, images.data().validation, images.normalization()).accuracy}});
  });
}
