// A custom module: declare, initialise, train and save it.
#include <plumb/plumb.h>
using namespace plumb;

struct GatedMlp : nn::Layer {  // [B, 8] -> [B, 3]: out(gelu(gate x) * (value x))
  nn::Child<nn::Linear> value{this, "value", {.in = 8, .out = 64}}, gate{this, "gate", {.in = 8, .out = 64}};
  nn::Child<nn::Linear> out{this, "out", {.in = 64, .out = 3}};
  Tensor forward(const Tensor& x) const override { return out(gelu(gate(x)) * value(x)); }
};

int main() {
  GatedMlp model;
  nn::initialize(model, 0);  // draws each parameter from the seed and its full name
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  fmt::print("{}", optimizer.describe_groups());
  const Tensor x = random_normal({256, 8}, 0, "x"),
               labels = argmax(slice(x, 1, 0, 3));  // the largest of the first three inputs
  for (int step = 0; step < 100; ++step) {
    const Gradients g = backward(cross_entropy(model(x), labels));
    optimizer.step(g);
    if (step % 25 == 0)
      fmt::print("step {:>2}: loss {:.3f}, |dL/d out.weight| {:.3f}\n", step, g.loss(), norm(g["out.weight"]).item());
  }
  nn::save_weights(model, "gated_mlp.safetensors");
}
