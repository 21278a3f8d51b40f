// Times one training step of a DETR on fixed random images and boxes: forward, matching, loss of a set, backward,
// AdamW. The last line of stdout is a JSON object. peer_detr.py runs the same step in PyTorch and prints an object with
// the same keys. compare.sh runs both in turn.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "core/backend.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/json_value.h"
#include "plumb/vision.h"

using namespace plumb;

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::int64_t dim = 64, heads = 4, encoder = 2, decoder = 2, hidden = 128, queries = 10, batch = 32, image = 64,
               classes = 3, objects = 3, threads = 2, steps = 20, warmup = 5, seed = 0;
};

void declare(lab::Cli& cli, Options& o) {
  cli.section("Model");
  const auto size = [&](const char* name, std::int64_t* value, const char* help) {
    cli.option(name, value, help).at_least(1);
  };
  size("--dim", &o.dim, "Width of the transformer");
  size("--heads", &o.heads, "Attention heads");
  size("--encoder", &o.encoder, "Blocks of the encoder");
  size("--decoder", &o.decoder, "Blocks of the decoder");
  size("--hidden", &o.hidden, "Hidden width of the MLPs");
  size("--queries", &o.queries, "Queries");
  size("--image", &o.image, "Image side in pixels");
  size("--classes", &o.classes, "Classes of objects");
  cli.section("Measurement");
  size("--batch", &o.batch, "Images per step");
  size("--objects", &o.objects, "Objects in each image");
  cli.option("--threads", &o.threads, "CPU threads; 0: all").at_least(0);
  size("--steps", &o.steps, "Measured steps");
  cli.option("--warmup", &o.warmup, "Steps before the measured ones").at_least(0);
  cli.option("--seed", &o.seed, "Seed of the initial values and the data").at_least(0);
  cli.rule([&] {
    lab::usage_check(o.dim % o.heads == 0 && o.dim % 4 == 0, "--dim {} is not a multiple of --heads {} and of 4", o.dim,
                     o.heads);
  });
}

// Objects with random classes, and boxes of a fifth of each side at random places.
nn::Targets random_targets(const Options& o) {
  const auto draw = [&](std::int64_t image, std::int64_t object) {
    return philox({static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(object), 0, 0},
                  random_key(static_cast<std::uint64_t>(o.seed), "targets"));
  };
  nn::Targets targets(static_cast<std::size_t>(o.batch));
  for (std::int64_t b = 0; b < o.batch; ++b)
    for (std::int64_t k = 0; k < o.objects; ++k) {
      const auto r = draw(b, k);
      const double x = 0.8 * (r[0] / 4294967296.0), y = 0.8 * (r[1] / 4294967296.0);
      targets[static_cast<std::size_t>(b)].push_back({r[2] % o.classes, {x, y, x + 0.2, y + 0.2}});
    }
  return targets;
}

Json measure(const Options& o) {
  const auto seed = static_cast<std::uint64_t>(o.seed);
  nn::Detr model({.classes = o.classes,
                  .backbone = {16, 32, 64},  // that of bin/detr and peer_detr.py
                  .dim = o.dim,
                  .heads = o.heads,
                  .encoder = o.encoder,
                  .decoder = o.decoder,
                  .hidden = o.hidden,
                  .queries = o.queries,
                  .method = "pre",
                  .seed = seed});
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-4, .weight_decay = 1e-4});
  const Tensor images = random_normal({o.batch, 3, o.image, o.image}, seed, "images");
  const nn::Targets targets = random_targets(o);
  std::vector<double> seconds;
  double loss = 0;
  for (std::int64_t step = 0; step < o.warmup + o.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const Gradients g = backward(nn::set_loss(model.detect(images), targets).total);
    optimizer.step(g);
    loss = g.loss();
    if (step >= o.warmup)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  rusage end{};
  getrusage(RUSAGE_SELF, &end);
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  return {{"min_s", seconds[0]},
          {"median_s", median},
          {"images_per_s", static_cast<double>(o.batch) / median},
          {"loss", loss},
          {"peak_bytes", static_cast<std::int64_t>(end.ru_maxrss) * 1024},
          {"parameters", model.parameter_count()}};
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    Options o;
    lab::Cli cli("bench_detr", "Times a training step of a DETR on random data, and prints a line of JSON.");
    declare(cli, o);
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    set_num_threads(static_cast<int>(o.threads));
    set_strict_determinism(false);
    Json result = Json::parse(cli.settings());
    result["threads"] = num_threads();
    result.update(measure(o));
    result.update(Json{{"machine", cpu_description()}, {"commit", lab::commit()}, {"build", lab::build()}});
    lab::write_result(result.dump() + "\n");
    return 0;
  });
}
