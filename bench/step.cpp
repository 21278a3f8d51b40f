// Times one training step of a ViT on fixed random data: forward, cross-entropy, backward, AdamW. With --work hvp,
// times one Hessian-vector product: forward, cross-entropy, the gradient with its graph, and the gradient of the
// gradient along the vector. The last line of stdout is a JSON object. peer_torch.py and peer_jax.py run the same step
// in PyTorch and JAX and print an object with the same keys. compare.sh runs the three programs in turn.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "autograd/second_order.h"
#include "core/backend.h"
#include "experiments/lab/build_info.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/record/json_value.h"
#include "experiments/lab/run/setup.h"
#include "plumb/plumb.h"

using namespace plumb;

namespace {

using Json = nlohmann::ordered_json;

enum class Work { step, hvp };
constexpr auto names_of(Work) { return std::array{"step", "hvp"}; }

struct Options {
  std::int64_t depth = 12, dim = 192, heads = 3, batch = 64, image = 32, patch = 4, classes = 100, threads = 2,
               steps = 20, warmup = 5, seed = 0;
  std::string gate = "none";
  Work work = Work::step;
  lab::NumberFormat dtype = lab::NumberFormat::fp32;
  lab::DeviceChoice device = lab::DeviceChoice::cpu;
  lab::Determinism deterministic = lab::Determinism::threads;
  double dropkey = 0;
};

// Returns the method for --gate. "none" is the peers' name for a plain pre-norm residual. The LayerScale of the peers
// has the initial value 1e-4 at every depth.
nn::MethodChoice method_of(const std::string& name) {
  if (name == "none") return "pre";
  if (name == "layerscale") return nn::methods::layerscale(1e-4);
  return name;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names = nn::method_names();
  names.insert(names.begin(), "none");
  return names;
}

void declare(lab::Cli& cli, Options& o) {
  cli.section("Model");
  cli.option("--depth", &o.depth, "Number of blocks").at_least(1);
  cli.option("--dim", &o.dim, "Width").at_least(1);
  cli.option("--heads", &o.heads, "Number of attention heads").at_least(1);
  cli.option("--image", &o.image, "Image side in pixels").at_least(1);
  cli.option("--patch", &o.patch, "Patch side in pixels").at_least(1);
  cli.option("--classes", &o.classes, "Number of classes").at_least(2);
  cli.option("--gate", &o.gate, "Residual method; none: plain pre-norm; layerscale starts at 1e-4")
      .one_of("gate", method_names());
  cli.option("--dropkey", &o.dropkey, "DropKey rate").at_least(0).at_most(1);
  cli.section("Measurement");
  cli.option("--work", &o.work, "Work to time: a training step or a Hessian-vector product").one_of("work");
  cli.option("--batch", &o.batch, "Images per step").at_least(1);
  cli.option("--dtype", &o.dtype, "Arithmetic of the matrix products")
      .one_of("dtype", std::vector{lab::NumberFormat::fp32, lab::NumberFormat::bf16});
  cli.option("--device", &o.device, "Device to compute on")
      .one_of("device", std::vector{lab::DeviceChoice::cpu, lab::DeviceChoice::cuda});
  cli.option("--threads", &o.threads, "CPU threads; 0: all").at_least(0);
  cli.option("--deterministic", &o.deterministic, "Same bits for a fixed number of threads, or (strict) for any number")
      .one_of("kind");
  cli.option("--steps", &o.steps, "Measured steps").at_least(1);
  cli.option("--warmup", &o.warmup, "Steps before the measured ones").at_least(0);
  cli.option("--seed", &o.seed, "Seed of the initial values, the data and the dropping").at_least(0);
  cli.rule([&] {
    lab::usage_check(o.dim % o.heads == 0, "--dim {} is not a multiple of --heads {}", o.dim, o.heads);
    lab::usage_check(o.image % o.patch == 0, "--patch {} does not divide the image side {}", o.patch, o.image);
  });
  cli.examples({"--gate layerscale --dropkey 0.1"});
}

// Returns the FLOPs of the matrix products of a step: the forward products, and twice the same FLOPs for the backward
// products. The count includes the gradient of the images, although no program computes this gradient.
double matmul_flops(const Options& o) {
  const auto patches = static_cast<double>((o.image / o.patch) * (o.image / o.patch)), tokens = patches + 1,
             dim = static_cast<double>(o.dim);
  const double block = 2 * tokens * 12 * dim * dim + 4 * tokens * tokens * dim;
  const double embed = 2 * patches * 3 * static_cast<double>(o.patch * o.patch) * dim,
               head = 2 * dim * static_cast<double>(o.classes);
  return 3 * static_cast<double>(o.batch) * (static_cast<double>(o.depth) * block + embed + head);
}

rusage usage() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u;
}

// Returns the network to measure, with its initial values.
nn::ViT model_of(const Options& o) {
  return nn::ViT({.image = o.image,
                  .patch = o.patch,
                  .classes = o.classes,
                  .dim = o.dim,
                  .depth = o.depth,
                  .heads = o.heads,
                  .method = method_of(o.gate),
                  .norm_eps = 1e-5,  // the default of PyTorch
                  .drop_key = {.rate = o.dropkey},
                  .pool = nn::Pool::token,
                  .seed = static_cast<std::uint64_t>(o.seed)});
}

Json measure(const Options& o) {
  const Device device = lab::device_of(o.device);
  const DefaultsScope defaults({.device = device});
  const Precision products = lab::precision_for(o.dtype, device);
  const PrecisionScope precision(products);
  const auto seed = static_cast<std::uint64_t>(o.seed);
  nn::ViT model = model_of(o);
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-3, .weight_decay = 0.05});
  const Tensor images = random_normal({o.batch, 3, o.image, o.image}, seed, "images");
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < o.batch; ++i)
    labels.push_back(philox({static_cast<std::uint32_t>(i), 0, 0, 0}, random_key(seed, "labels"))[0] % o.classes);
  const Tensor targets = integers(labels, {o.batch});

  const Tensors parameters = model.trainable(), direction = random_normal_like(parameters, seed, "direction");

  std::vector<double> seconds, host_seconds;  // host: until all work of a step is given to the device
  Traffic before;
  double loss = 0, norm_of_product = 0;
  std::int64_t faults = 0;
  for (std::int64_t step = 0; step < o.warmup + o.steps; ++step) {
    const RandomScope random({.seed = seed, .step = static_cast<std::uint32_t>(step)});
    if (step == o.warmup) faults = usage().ru_minflt, before = memory_of(device).traffic();
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    double of_host = 0;
    if (o.work == Work::hvp) {
      const Tensor value = cross_entropy(model(images), targets);
      const Tensors product = hvp(value, parameters, direction);
      of_host = elapsed();
      norm_of_product = norm(product);
      loss = value.item();
    } else {
      const Gradients g = backward(cross_entropy(model(images), targets));
      optimizer.step(g);
      of_host = elapsed();
      loss = g.loss();
    }
    if (step >= o.warmup) seconds.push_back(elapsed()), host_seconds.push_back(of_host);
  }
  const rusage end = usage();
  if (o.work == Work::hvp)
    check(std::isfinite(norm_of_product) && norm_of_product > 0,
          "[bench_step] expected a finite Hessian-vector product other than 0, got one with norm {}", norm_of_product);
  std::ranges::sort(seconds);
  std::ranges::sort(host_seconds);
  const double median = seconds[seconds.size() / 2];
  Json result{{"min_s", seconds[0]},
              {"median_s", median},
              {"images_per_s", static_cast<double>(o.batch) / median},
              {"gflops_per_s", matmul_flops(o) / median * 1e-9},
              {"loss", loss},
              {"parameters", model.parameter_count()}};
  if (device == Device::cuda) {
    const Traffic traffic = cuda_memory().traffic().since(before);
    const auto steps = static_cast<std::uint64_t>(o.steps);
    result.update({{"machine", cuda_description()},
                   {"products", products == Precision::bf16 ? "bf16 by cuBLASLt" : "f32 by cuBLASLt"},
                   {"launches", traffic.launches / steps},  // of a step
                   {"plain_products", traffic.plain_products / steps},
                   {"host_ms", 1e3 * host_seconds[host_seconds.size() / 2]},
                   {"peak_bytes", static_cast<std::int64_t>(memory_stats(device).peak)}});
  } else {
    result.update(
        {{"machine", cpu_description()},
         {"products", products == Precision::bf16 ? fmt::format("bf16 by {}", bf16_products().instructions) : "f32"},
         {"peak_bytes", static_cast<std::int64_t>(end.ru_maxrss) * 1024},
         {"page_faults", end.ru_minflt - faults}});  // number of minor page faults during the measured steps
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    Options o;
    lab::Cli cli(
        "bench_step",
        "Times a training step of a ViT on random data, or a Hessian-vector product, and prints a line of JSON.");
    declare(cli, o);
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    set_num_threads(static_cast<int>(o.threads));
    set_strict_determinism(o.deterministic == lab::Determinism::strict);
    Json result = Json::parse(cli.settings());
    if (o.device == lab::DeviceChoice::cuda)
      result.erase("threads");
    else
      result["threads"] = num_threads();
    result.update(measure(o));
    result.update(Json{{"commit", lab::commit()}, {"build", lab::build()}});
    lab::write_result(result.dump() + "\n");
    return 0;
  });
}
