// Tutorial, page 2: a small convolutional network, its training loop and optimizer, its validation, and its weights in
// a file.
#include <plumb/vision.h>

#include <filesystem>
using namespace plumb;

struct Net : nn::Layer {  // images [B, 3, 32, 32] -> logits [B, 10]
  nn::Child<nn::Conv2d> conv1{this, "conv1", {.in = 3, .out = 16, .kernel = 5, .stride = 2, .padding = 2}};
  nn::Child<nn::Conv2d> conv2{this, "conv2", {.in = 16, .out = 32, .kernel = 5, .stride = 2, .padding = 2}};
  nn::Child<nn::Dropout> dropout{this, "dropout", 0.1};
  nn::Child<nn::Linear> head{this, "head", {.in = 32, .out = 10}};

  Tensor forward(const Tensor& images) const override {
    const Tensor features = relu(conv2(relu(conv1(images))));  // [B, 32, 8, 8]
    return head(dropout(mean(features, {2, 3})));
  }
};

int main() {
  const vision::ImageData data = vision::open_data("glyphs", "");  // images that Plumb draws itself: no files
  const vision::Normalization normalization = vision::normalization_of(data.train);
  vision::BatchLoader loader(data.train, normalization, {.batch = 64, .seed = 0});

  Net model;
  nn::initialize(model, /*seed=*/0);
  const std::int64_t steps = 200;
  nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(5e-3, 20, steps)});
  fmt::print("{} parameters\n{}", model.parameter_count(), optimizer.describe_groups());

  for (std::uint32_t step = 0; step < steps; ++step) {
    const RandomScope random({.seed = 0, .step = step});  // the draws of dropout
    const vision::Batch batch = vision::to_tensors(loader.next(), data.train);
    const double lr = optimizer.learning_rate();
    const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
    optimizer.step(g);
    if (step % 40 == 0 || step == steps - 1)
      fmt::print("step {:>3}: loss {:.3f}, learning rate {:.4f}\n", step, g.loss(), lr);
  }

  const vision::Evaluation trained = vision::evaluate(model, data.validation, normalization);
  fmt::print("validation:    loss {:.3f}, accuracy {:.1f} %\n", trained.loss, 100 * trained.accuracy);

  const auto file = std::filesystem::temp_directory_path() / "plumb_tutorial_2.safetensors";
  nn::save_weights(model, file);
  Net loaded;
  nn::load_weights(loaded, file);
  fmt::print("from the file: loss {:.3f}\n", vision::evaluate(loaded, data.validation, normalization).loss);
  std::filesystem::remove(file);
}
