// Is the gradient of a gate with initial value 0 a signal, or only noise? This program takes several batches through a
// fresh ReZero network and measures (mean gradient)^2 / mean of (gradient^2) over the gates. This share is 1 if all
// batches agree, and about 1 / batches if the gradients are only noise. The program also measures the norms of the
// gradients of the gates and of the branches. The gradients of the branches are 0 at initialisation.
#include <plumb/vision.h>

#include <map>
using namespace plumb;

int main(int argc, char** argv) {
  vision::Study study("gradient_signal", "Signal in the gradients of zero gates.",
                      {.network = false, .optimization = false});
  return study.run(argc, argv, [](vision::Trial& trial) {
    nn::ViTOptions options = vision::vit(trial, {.depth = 6, .method = "rezero"});
    options.pool = nn::Pool::token;
    nn::ViT model(options);
    std::map<std::string, double> means;  // mean gradients by gate
    double gates = 0, branches = 0;       // mean squared norms of the gradients
    const auto batches = static_cast<double>(trial.steps());
    for (vision::Step& step : trial.loop()) {
      const vision::Batch& batch = step.batch();
      const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
      for (const Gradients::Entry& entry : g.entries()) {
        if (!entry.name().starts_with("blocks.")) continue;
        const double square = sum(entry.gradient * entry.gradient).item();
        const bool is_gate = entry.name().find("gate") != std::string::npos;
        (is_gate ? gates : branches) += square / batches;
        if (is_gate) means[entry.name()] += entry.gradient.item() / batches;
      }
    }
    double signal = 0;
    for (const auto& [name, mean] : means) signal += mean * mean;
    trial.log({{"signal_in_gates", signal / gates},
               {"noise_alone", 1 / batches},
               {"gates", std::sqrt(gates)},
               {"branches", std::sqrt(branches)}});
  });
}
