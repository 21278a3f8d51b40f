// Does a gate that starts at zero know where to go? At that start its branch has no gradient at all, and its own may be
// noise. Over batches of a fresh ReZero network: the share of the mean in the squared gradient of the gates, 1 where
// all batches agree and 1 / batches where there is noise alone.
#include <plumb/plumb.h>

#include <map>
using namespace plumb;

int main(int argc, char** argv) {
  return lab::experiment(argc, argv, {.name = "gradient_signal", .summary = "Signal in the gradients of zero gates."},
                         [](lab::Run& run) {
                           nn::ViTOptions options = run.vit({.depth = 6, .gate = "rezero"});
                           options.pool = nn::Pool::token;
                           nn::ViT model(options);
                           std::map<std::string, double> means;  // by gate
                           double gates = 0, branches = 0;       // mean squares
                           const auto batches = static_cast<double>(run.steps());
                           for (const lab::Batch& batch : run.batches()) {
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
                           run.log({{"signal_in_gates", signal / gates},
                                    {"noise_alone", 1 / batches},
                                    {"gates", std::sqrt(gates)},
                                    {"branches", std::sqrt(branches)}});
                         });
}
