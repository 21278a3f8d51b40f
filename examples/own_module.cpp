// A custom module: declare, initialise, train and save it.
#include <plumb/plumb.h>
using namespace plumb;

struct GatedMlp : nn::Layer {  // [B, in] -> [B, out]: out(gelu(gate x) * (value x))
  nn::Linear value, gate, out;

  GatedMlp(std::int64_t inputs, std::int64_t hidden, std::int64_t outputs)
      : Layer("GatedMlp"),
        value({.in = inputs, .out = hidden}),
        gate({.in = inputs, .out = hidden}),
        out({.in = hidden, .out = outputs}) {
    child("value", value);  // a member that is not registered is neither trained nor saved
    child("gate", gate);
    child("out", out);
  }
  Tensor forward(const Tensor& x) const override { return out(gelu(gate(x)) * value(x)); }
};

int main() {
  GatedMlp model(8, 64, 3);
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
