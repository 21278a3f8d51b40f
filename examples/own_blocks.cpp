// Blocks of your own: a decoder block of three junctions that reads a memory, trained on two threads, and a residual
// convolutional network. The argument is the residual method of both, such as rezero or layerscale:init=1e-4.
#include <plumb/plumb.h>

#include <future>
using namespace plumb;

struct CrossAttention : nn::Branch {  // from the stream x [B, T, D] to a memory [B, M, D]
  static constexpr std::int64_t heads = 2;
  nn::Child<nn::Linear> q, k, v, proj;

  explicit CrossAttention(const nn::JunctionPlace& place)
      : CrossAttention(nn::Linear::Options{.in = place.dim, .out = place.dim, .init = place.init()}) {}
  explicit CrossAttention(const nn::Linear::Options& o)
      : Branch("Cross", {.heads = heads}), q(this, "q", o), k(this, "k", o), v(this, "v", o), proj(this, "proj", o) {}
  void scale_value_path(double factor) override { v.scale_init(factor), proj.scale_init(factor); }
  Tensor forward(nn::BranchCall& call) const override {
    const nn::MemoryTokens& m = call.memory();
    const auto split = [](const Tensor& t) { return nn::split_heads(t, heads); };
    const Tensor h = attention(split(call.enter(q)), split(k(m.x + m.position)), split(v(m.x)),
                               {.keep = reshape(m.keep, {m.keep.dim(0), 1, 1, -1})});
    return call.leave(proj, nn::merge_heads(h));
  }
};

int main(int argc, char** argv) {
  const nn::MethodChoice method = argc > 1 ? argv[1] : "layerscale";
  nn::Stack decoder(
      {.dim = 32,
       .depth = 2,
       .method = method,
       .junctions = {nn::self_attention({.heads = 2}), nn::branch<CrossAttention>("cross"), nn::mlp({.hidden = 64})}});
  nn::initialize(decoder, 0);

  // Each query must add the mean of its memory. The last two of the six entries of a memory are padding.
  const Tensor queries = random_normal({8, 4, 32}, 0, "queries"), encoded = random_normal({8, 6, 32}, 0, "encoded");
  const Tensor positions = random_normal({6, 32}, 0, "positions"), keep = less(broadcast_to(arange(6.0), {4, 6}), 4);
  const Tensor target = queries + mean(slice(encoded, 1, 0, 4), 1, true);
  const auto gradients = [&](std::int64_t first) {  // of four samples, half of the batch
    const auto part = [&](const Tensor& t) { return slice(t, 0, first, first + 4); };
    const nn::MemoryTokens memory{.x = part(encoded), .position = positions, .keep = keep};
    return backward(mse_loss(decoder(part(queries), {.memory = memory}), part(target))) / 2;
  };
  nn::AdamW optimizer(decoder.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 100; ++step) {
    auto other = std::async(std::launch::async, gradients, 4);  // one model on two threads at once
    Gradients g = gradients(0);
    g += other.get();
    optimizer.step(g);
    if (step % 33 == 0) fmt::print("step {:>2}: loss {:.1e}\n", step, g.loss());
  }
  nn::Stack cnn(
      {.dim = 8, .depth = 2, .method = method, .junctions = {nn::conv_branch()}, .layout = nn::Layout::images});
  nn::initialize(cnn, 0);
  fmt::print("images {}\n", cnn(random_normal({2, 8, 16, 16}, 0, "images")).shape());
  for (const nn::Parameter& p : cnn.parameters())
    if (p.role == nn::Role::gate) fmt::print("{} {}\n", p.name, p.value.shape());
}
