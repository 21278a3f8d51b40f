// Tests of training on the device. The results are the results of training on the cpu, up to the rounding of f32. The
// tests cover every method, CaiT, a deep MLP and every optimizer.
#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/debug.h"
#include "core/host_values.h"
#include "core/memory.h"
#include "core/precision.h"
#include "experiments/lab/options/optimizer_options.h"
#include "nn/io/weights.h"
#include "nn/models/deep_mlp.h"
#include "plumb/plumb.h"
#include "tests/support/cuda.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using plumb::test::contains, plumb::test::error_of, plumb::test::TemporaryFolder;

namespace {

constexpr int steps = 10, batch = 4, classes = 10;

// Creates a model with the dtype and device of defaults().
using Model = std::function<std::unique_ptr<nn::Layer>()>;

std::vector<double> losses(const Defaults& where, const Model& make, lab::OptimizerKind optimizer,
                           double clip_norm = 0) {
  const DefaultsScope defaults(where);
  const auto model = make();
  const auto by = lab::make_optimizer(optimizer, model->parameters(), 3e-3, 0.05, clip_norm);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) labels.push_back(i * 7 % classes);
  std::vector<double> all;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const RandomScope random({.seed = 3, .step = step});
    const Tensor images = random_normal({batch, 3, 16, 16}, step, "images");
    const Gradients g = backward(cross_entropy((*model)(images), integers(labels, {batch})));
    by->step(g);
    all.push_back(g.loss());
  }
  return all;
}

// Returns the largest |a - b| / |b|.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double d = std::abs(a.at(i) - b[i]) / std::abs(b[i]);
    if (std::isnan(d)) return d;
    most = std::max(most, d);
  }
  return most;
}

// Checks the losses on the device. The losses may differ from the losses on the cpu by a relative 1e-4. Let d be the
// difference between the cpu and f64, which comes from rounding. If d is more than 1e-5, the losses on the device may
// differ by 10 d if 10 d is more than 1e-4.
void check_training(const std::string& name, const Model& make,
                    lab::OptimizerKind optimizer = lab::OptimizerKind::adamw, double clip_norm = 0) {
  INFO(name);
  const std::vector<double> cpu = losses({DType::f32, Device::cpu}, make, optimizer, clip_norm);
  const double rounding = apart(cpu, losses({DType::f64, Device::reference}, make, optimizer, clip_norm));
  CHECK(std::isfinite(cpu.back()));
  CHECK(rounding < 1e-3);  // otherwise the comparison would be meaningless
  const std::uint64_t before = cuda_memory().traffic().through_host;
  CHECK(apart(losses({DType::f32, Device::cuda}, make, optimizer, clip_norm), cpu) <=
        std::max(1e-4, rounding > 1e-5 ? 10 * rounding : 0));
  CHECK(cuda_memory().traffic().through_host == before);
}

nn::ViTOptions small() {
  return {.image = 16,
          .patch = 4,
          .classes = classes,
          .dim = 32,
          .depth = 2,
          .heads = 2,
          .pool = nn::Pool::token,
          .seed = 3};
}
Model vit(const nn::ViTOptions& options) {
  return [options] { return std::make_unique<nn::ViT>(options); };
}

}  // namespace

TEST_CASE("every method trains as on the cpu", "[long]") {
  PLUMB_REQUIRE_CUDA();
  for (const std::string& gate : nn::method_names()) {
    nn::ViTOptions options = small();
    options.method = gate;
    check_training(gate, vit(options));
  }
}

TEST_CASE("every way of dropping draws the same masks as on the cpu") {
  PLUMB_REQUIRE_CUDA();
  nn::ViTOptions options = small();
  options.drop_path = {.rate = 0.3};
  options.attention_dropout = 0.2;
  options.drop_key = {.rate = 0.3};
  check_training("DropKey, drop-path, dropout", vit(options));
  options.drop_head = {.rate = 0.5};
  check_training("DropHead too", vit(options));
}

TEST_CASE("CaiT and a deep MLP train as on the cpu") {
  PLUMB_REQUIRE_CUDA();
  check_training("CaiT", [] {
    return std::make_unique<nn::CaiT>(nn::CaiTOptions{.image = 16,
                                                      .patch = 4,
                                                      .classes = classes,
                                                      .dim = 32,
                                                      .depth = 2,
                                                      .heads = 2,
                                                      .drop_key = {.rate = 0.2},
                                                      .seed = 3});
  });
  for (const std::string& method : nn::deep_mlp_methods())
    check_training("deep MLP, " + method, [&] {
      return std::make_unique<nn::DeepMlp>(nn::DeepMlpOptions{
          .inputs = 3 * 16 * 16, .width = 32, .depth = 6, .classes = classes, .method = method, .seed = 3});
    });
}

TEST_CASE("every optimizer trains as on the cpu with and without clipping") {
  PLUMB_REQUIRE_CUDA();
  for (const lab::OptimizerKind optimizer : enum_values<lab::OptimizerKind>())
    for (const double clip_norm : {0.0, 0.1}) check_training(enum_name(optimizer), vit(small()), optimizer, clip_norm);
}

namespace {

constexpr std::int64_t tokens_of_image = 17;  // number of tokens of small(): 16 patches and the class token

// The traffic of the second training step of a ViT. The ViT has the given depth, LayerScale, DropKey and drop-path. The
// step includes clipping and weight averaging.
struct StepTraffic : Traffic {
  std::uint64_t bytes_of_passes = 0;  // forward and backward, without the optimizer and the average
  std::int64_t elements = 0;          // number of elements of the parameters
};
StepTraffic traffic_of_a_step(std::int64_t depth, std::int64_t images) {
  const DefaultsScope defaults({DType::f32, Device::cuda});
  nn::ViTOptions options = small();
  options.depth = depth;
  options.method = "layerscale";
  options.drop_key = {.rate = 0.1};
  options.drop_path = {.rate = 0.1};
  const nn::ViT model(options);
  nn::AdamW optimizer(model.parameters(), {.clip_norm = 1});
  nn::Ema ema(model, {.decay = 0.9});
  const std::vector<float> pixels(static_cast<std::size_t>(images * 3 * 16 * 16), 0.5f);
  const std::vector<std::int64_t> classes_of(static_cast<std::size_t>(images), 3);
  std::optional<nn::StepReading> reading;
  Traffic before;
  StepTraffic after;
  for (std::uint32_t number : {0u, 1u}) {
    before = cuda_memory().traffic();
    const RandomScope random({.seed = 3, .step = number});
    const std::vector<Array> data = arrays_from(
        {{pixels.data(), {images, 3, 16, 16}, DType::f32}, {classes_of.data(), {images}, DType::i64}}, Device::cuda);
    const Gradients gradients = backward(cross_entropy(model(Tensor(data[0])), Tensor(data[1])));
    after.bytes_of_passes = cuda_memory().traffic().bytes - before.bytes;
    reading = optimizer.step_while_finite(gradients);
    ema.update();
    static_cast<Traffic&>(after) = cuda_memory().traffic().since(before);
  }
  CHECK(std::isfinite(reading->loss()));
  CHECK(reading->norm() > 0);
  for (const nn::Parameter& p : model.parameters()) after.elements += p.value.numel();
  return after;
}

}  // namespace

TEST_CASE("a training step never waits and runs all kernels on the device") {
  PLUMB_REQUIRE_CUDA();
  const StepTraffic two = traffic_of_a_step(2, batch), three = traffic_of_a_step(3, batch);
  CHECK(two.through_host == 0);
  CHECK(two.synchronizations == 0);
  CHECK(two.downloads == 0);
  CHECK(two.paced == 0);
  CHECK(two.readbacks == 1);  // the loss and the norm are read without waiting
  CHECK(two.uploads == 2);    // the batch and AdamW's table
  CHECK(two.copies == 0);
  CHECK(two.plain_products == 0);
  CHECK(two.launches == 93);
  CHECK(three.launches - two.launches == 30);
}

TEST_CASE("talking heads draw their masks on the device") {
  PLUMB_REQUIRE_CUDA();
  const DefaultsScope defaults({DType::f32, Device::cuda});
  const RandomScope random({.seed = 3, .step = 1});
  const auto some = [](const Shape& shape, const char* what) { return variable(random_normal(shape, 0, what)); };
  const Tensor q = some({2, 3, 5, 4}, "q"), k = some({2, 3, 5, 4}, "k"), v = some({2, 3, 5, 4}, "v"),
               mix = some({3, 3}, "mix"), bias = zeros({3});
  const Traffic before = cuda_memory().traffic();
  const Gradients gradients = backward(sum(attention_talking(
      q, k, v, mix, bias, mix, bias, {.drop_key = 0.3, .dropout = 0.3, .empty = EmptyRow::paper, .causal = true})));
  const Traffic after = cuda_memory().traffic();
  CHECK(after.uploads == before.uploads);
  CHECK(after.through_host == before.through_host);
  CHECK(after.synchronizations == before.synchronizations);
  CHECK(after.launches > before.launches);
}

TEST_CASE("a block reads and writes little more than the minimum for its kernels") {
  PLUMB_REQUIRE_CUDA();
  const std::int64_t images = 32;  // with this number of images, the weights count for little
  const StepTraffic two = traffic_of_a_step(2, images), three = traffic_of_a_step(3, images);
  const std::uint64_t of_block = three.bytes_of_passes - two.bytes_of_passes;
  CHECK(of_block == 7'957'504);
  // For each f32 parameter, the norm reads the gradient, AdamW reads or writes seven arrays, and the average reads or
  // writes three arrays. The tables add less than 5 %.
  const auto rest = static_cast<double>(two.bytes - two.bytes_of_passes),
             of_parameters = static_cast<double>(11 * 4 * two.elements);
  CHECK(rest > of_parameters);
  CHECK(rest < 1.05 * of_parameters);
  const double bytes = static_cast<double>(of_block) / static_cast<double>(images * tokens_of_image * small().dim);
  INFO(bytes << " dim bytes a token");
  // 392: forward and backward of a block in f32 if each pass is fused as far as possible.
  CHECK(bytes < 1.3 * 392);
}

TEST_CASE("a step in bf16 runs all kernels on the device and trains as on the cpu") {
  PLUMB_REQUIRE_CUDA();
  const PrecisionScope precision(Precision::bf16);
  const StepTraffic step = traffic_of_a_step(2, batch);
  CHECK(step.through_host == 0);
  CHECK(step.synchronizations == 0);
  CHECK(step.plain_products == 0);
  CHECK(step.launches == 128);
  CHECK(traffic_of_a_step(3, batch).launches - step.launches == 44);
  CHECK(traffic_of_a_step(3, 32).bytes_of_passes - traffic_of_a_step(2, 32).bytes_of_passes == 6771328);
  for (const char* const gate : {"layerscale", "rezero", "pre", "fixup"}) {
    nn::ViTOptions options = small();
    options.method = gate;
    options.drop_key = {.rate = 0.1};
    options.drop_path = {.rate = 0.1};
    const std::vector<double> cpu = losses({DType::f32, Device::cpu}, vit(options), lab::OptimizerKind::adamw, 1),
                              cuda = losses({DType::f32, Device::cuda}, vit(options), lab::OptimizerKind::adamw, 1);
    INFO(gate << ": " << apart(cuda, cpu));
    // There are only roundings of 2^-9, because no step has amplified the roundings yet.
    CHECK(apart({cuda[0]}, {cpu[0]}) < 1e-3);
    CHECK(apart(cuda, cpu) < 2e-2);
  }
}

TEST_CASE("a step that is not finite stops all changes and its numbers can be read later") {
  PLUMB_REQUIRE_CUDA();
  for (const Device device : {Device::cpu, Device::cuda}) {
    const DefaultsScope defaults({DType::f32, device});
    for (const lab::OptimizerKind kind : enum_values<lab::OptimizerKind>()) {
      INFO(enum_name(kind));
      const nn::ViT model(small());
      const auto optimizer = lab::make_optimizer(kind, model.parameters(), 1e-3, 0.05, 1);
      const Tensor labels = integers(std::vector<std::int64_t>(batch, 3), {batch}),
                   good = random_normal({batch, 3, 16, 16}, 0, "images");
      const auto step = [&](const Tensor& images) {
        return optimizer->step_while_finite(backward(cross_entropy(model(images), labels)));
      };
      const auto weights = [&] {
        std::vector<double> all;
        for (const nn::Parameter& p : model.parameters())
          for (const double v : p.value.values()) all.push_back(v);
        return all;
      };
      const std::vector<double> first = weights();
      const nn::StepReading one = step(good);
      const std::vector<double> second = weights();
      CHECK(second != first);
      const nn::StepReading bad =
          step(full({batch, 3, 16, 16}, std::numeric_limits<double>::infinity(), {DType::f32, device}));
      const nn::StepReading late = step(good);  // the loss is finite, but the training has already stopped
      CHECK(weights() == second);
      CHECK(std::isfinite(one.loss()));
      CHECK(std::isfinite(one.norm()));
      CHECK_FALSE(std::isfinite(bad.loss()));
      CHECK(std::isfinite(late.loss()));
    }
  }
}

TEST_CASE("step() skips non-finite gradients without waiting and a later call names the step") {
  PLUMB_REQUIRE_CUDA();
  const DefaultsScope defaults({DType::f32, Device::cuda});
  for (const lab::OptimizerKind kind : enum_values<lab::OptimizerKind>())
    for (const double clip_norm : {0.0, 1.0}) {
      CAPTURE(enum_name(kind), clip_norm);
      const nn::ViT model(small());
      const auto optimizer = lab::make_optimizer(kind, model.parameters(), 1e-3, 0.05, clip_norm);
      const Tensor labels = integers(std::vector<std::int64_t>(batch, 3), {batch}),
                   good = random_normal({batch, 3, 16, 16}, 0, "images"),
                   bad = full({batch, 3, 16, 16}, std::numeric_limits<double>::infinity());
      const auto step = [&](const Tensor& images) {
        const Gradients g = backward(cross_entropy(model(images), labels));
        const std::uint64_t waits = cuda_memory().traffic().synchronizations;
        optimizer->step(g);
        CHECK(cuda_memory().traffic().synchronizations == waits);
      };
      const auto weights = [&] {
        std::vector<double> all;
        for (const nn::Parameter& p : model.parameters())
          for (const double v : p.value.values()) all.push_back(v);
        return all;
      };
      step(good);
      optimizer->check_finite();
      const std::vector<double> before = weights();
      const nn::NamedTensors state = optimizer->state();
      // The error comes from the first call after the numbers have arrived. With the eager schedule, this call is the
      // next step. Otherwise this call is check_finite().
      const auto begin_bad = [&] {
        step(bad);
        CHECK(optimizer->steps_taken() == 2);
      };
      begin_bad();
      CHECK_THAT(error_of([&] {
                   step(good);
                   optimizer->check_finite();
                 }),
                 contains("[optimizer] expected gradients without inf and NaN") &&
                     contains("got others in step 1. Step 1") && contains("the next step is 1 again"));
      CHECK(weights() == before);
      CHECK(optimizer->steps_taken() == 1);
      for (const auto& [key, value] : optimizer->state()) CHECK(value.values() == state.at(key).values());
      begin_bad();
      CHECK_THAT(error_of([&] { optimizer->state(); }), contains("got others in step 1"));
      // Loading a state discards the steps that are under way.
      begin_bad();
      optimizer->load_state(state);
      optimizer->check_finite();
      // Good steps before the bad step are applied and counted. Steps after the bad step are neither applied nor
      // counted.
      CHECK_THAT(error_of([&] {
                   for (const Tensor& images : {good, good, bad, good, good}) step(images);
                   optimizer->check_finite();
                 }),
                 contains("got others in step 3. Step 3"));
      CHECK(optimizer->steps_taken() == 3);
      // A guarded step waits for the steps that step() has started.
      step(bad);
      CHECK_THAT(error_of([&] { optimizer->step_while_finite(backward(cross_entropy(model(good), labels))); }),
                 contains("got others in step 3"));
      optimizer->load_state(state);
      step(good);  // this step continues as if the discarded steps had never run
      optimizer->check_finite();
      CHECK(weights() != before);
      CHECK(optimizer->steps_taken() == 2);
    }
}

TEST_CASE("weights and averages and optimizer state on the device can be saved and loaded") {
  PLUMB_REQUIRE_CUDA();
  const DefaultsScope defaults({DType::f32, Device::cuda});
  const TemporaryFolder folder;
  nn::ViTOptions options = small();
  nn::ViT model(options), other((options.seed = 4, options));
  const std::vector<nn::Parameter> parameters = model.parameters(), others = other.parameters();
  const std::vector<double> first = parameters[0].value.values(), second = others[0].value.values();
  nn::audit_init(other, 4);

  nn::Ema ema(model, {.decay = 0.5});
  nn::save_weights(other, folder.path() / "w.safetensors");
  nn::load_weights(model, folder.path() / "w.safetensors");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    CHECK(same_bytes(parameters[i].value.array(), others[i].value.array()));
  ema.update();
  nn::Ema restored(model, {.decay = 0.5});
  restored.load_state(ema.state());
  {
    const nn::EmaScope averaged(restored);
    const std::vector<double> mean = parameters[0].value.values();
    for (std::size_t i = 0; i < mean.size(); ++i) CHECK(std::abs(mean[i] - (first[i] + second[i]) / 2) < 1e-7);
  }
  CHECK(parameters[0].value.values() == second);

  // An optimizer with a restored state continues like the original.
  const Tensor images = random_normal({batch, 3, 16, 16}, 0, "images"),
               labels = integers(std::vector<std::int64_t>(batch, 3), {batch});
  nn::AdamW a(parameters, {.weight_decay = 0.1}), b(others, {.weight_decay = 0.1});
  a.step(backward(cross_entropy(model(images), labels)));
  b.load_state(a.state());
  nn::assign(nn::weights(other), nn::weights(model), "[test]");
  a.step(backward(cross_entropy(model(images), labels)));
  b.step(backward(cross_entropy(other(images), labels)));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    CHECK(same_bytes(parameters[i].value.array(), others[i].value.array()));
}

TEST_CASE("labels and indices out of range give NaN on the device because the host does not read them") {
  PLUMB_REQUIRE_CUDA();
  const DefaultsScope defaults({DType::f32, Device::cuda});
  const Tensor logits = variable(random_normal({4, 5}, 0, "logits"));
  CHECK(std::isfinite(cross_entropy(logits, integers({0, 1, 4, 2}, {4})).item()));
  for (const std::int64_t wrong : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 40})
    CHECK(std::isnan(cross_entropy(logits, integers({0, 1, wrong, 2}, {4})).item()));
  const std::vector<double> rows = gather(logits, integers({1, 4, -1}, {3})).values();
  CHECK(std::isfinite(rows[0]));
  for (std::size_t i = 5; i < 15; ++i) CHECK(std::isnan(rows[i]));

  const AnomalyMode anomaly;
  CHECK_THAT(error_of([&] {
               static_cast<void>(cross_entropy(logits, integers({0, 1, 7, 2}, {4})));
             }),
             contains("[cross_entropy] expected labels in 0..4, got 7 at 2"));
  CHECK_THAT(error_of([&] {
               static_cast<void>(gather(logits, integers({1, 4, 0}, {3})));
             }),
             contains("[gather] expected indices in 0..3"));
}
