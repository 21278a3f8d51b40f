// Time of one training step (forward, cross-entropy, backward, AdamW) of a ViT on fixed random data. Prints one JSON line with the
// minimum and median seconds a step, images/s and the process's peak memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "core/backend.h"
#include "experiments/common/cli.h"
#include "nn/nn.h"

using namespace plumb;

namespace {

struct Options {
  std::int64_t dim = 192, depth = 12, heads = 3, patch = 4, image = 32, classes = 100, batch = 64, steps = 20, warmup = 5, threads = 0;
  double drop_key = 0;
  std::string gate = "layerscale";
};

int measure(const Options& o) {
  set_num_threads(static_cast<int>(o.threads));
  nn::ViT model({.image = o.image,
                 .patch = o.patch,
                 .classes = o.classes,
                 .dim = o.dim,
                 .depth = o.depth,
                 .heads = o.heads,
                 .gate = o.gate,
                 .drop_key = {.rate = o.drop_key}});
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor images = random_normal({o.batch, 3, o.image, o.image}, 0, "images");
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < o.batch; ++i) labels.push_back(i * 37 % o.classes);
  const Tensor targets = integers(labels, {o.batch});

  std::vector<double> seconds;
  double loss = 0;
  for (std::int64_t step = 0; step < o.warmup + o.steps; ++step) {
    const RandomScope random({.seed = 0, .step = static_cast<std::uint32_t>(step)});
    const auto start = std::chrono::steady_clock::now();
    const Gradients g = backward(cross_entropy(model(images), targets));
    optimizer.step(g);
    if (step >= o.warmup) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    loss = g.loss();
  }
  std::ranges::sort(seconds);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double median = seconds[seconds.size() / 2];
  lab::write_result(
      fmt::format("{{\"dim\": {}, \"depth\": {}, \"batch\": {}, \"gate\": \"{}\", \"min_s\": {:.5f}, \"median_s\": {:.5f}, \"images_per_s\": {:.1f}, "
                  "\"loss\": {:.5f}, \"peak_bytes\": {}, \"parameters\": {}, \"machine\": \"{}\"}}\n",
                  o.dim, o.depth, o.batch, o.gate, seconds[0], median, static_cast<double>(o.batch) / median, loss,
                  static_cast<std::int64_t>(usage.ru_maxrss) * 1024, model.parameter_count(), cpu_description()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    Options o;
    lab::Cli cli("bench_training_step", "Time of one training step of a ViT on random data.");
    cli.section("Model");
    cli.option("--dim", &o.dim, "Width").at_least(1);
    cli.option("--depth", &o.depth, "Blocks").at_least(1);
    cli.option("--heads", &o.heads, "Attention heads").at_least(1);
    cli.option("--patch", &o.patch, "Side of a patch").at_least(1);
    cli.option("--image", &o.image, "Side of an image").at_least(1);
    cli.option("--classes", &o.classes, "Classes").at_least(2);
    cli.option("--gate", &o.gate, "Residual gate").one_of("gate", nn::gate_names());
    cli.option("--drop-key", &o.drop_key, "DropKey rate").at_least(0).at_most(1);
    cli.section("Measurement");
    cli.option("--batch", &o.batch, "Images a step").at_least(1);
    cli.option("--steps", &o.steps, "Steps measured").at_least(1);
    cli.option("--warmup", &o.warmup, "Steps before them").at_least(0);
    cli.option("--threads", &o.threads, "CPU threads; 0: all").at_least(0);
    return cli.parse(argc, argv) == lab::Action::done ? 0 : measure(o);
  });
}
