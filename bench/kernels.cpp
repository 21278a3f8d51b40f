// Times the kernels of a training step on the shapes of two models: milliseconds a call, GB/s and GF/s.
//   bench_kernels [threads] [kernel's name or a part of it]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "core/backend.h"

using namespace plumb;

namespace {

struct Model {
  const char* name;
  std::int64_t batch, tokens, dim, heads;
};

struct Row {
  std::string name;
  double bytes, operations;  // moved and computed by one call, as the algorithm needs them
  std::function<void()> run;
};

Array random(const Shape& shape) {
  static std::mt19937 generator(1);
  Array a(shape, DType::f32, Device::cpu);
  std::normal_distribution<float> value;
  std::generate_n(a.mutable_data<float>(), a.numel(), [&] { return value(generator); });
  return a;
}

// The best of many batches of calls, each of some milliseconds.
double seconds(const std::function<void()>& f) {
  const auto time = [&](int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
  };
  time(3);
  const int calls = std::max(1, static_cast<int>(3e-3 / time(3)));
  double best = 1e9;
  for (int i = 0; i < 20; ++i) best = std::min(best, time(calls));
  return best;
}

std::vector<Row> rows_of(const Model& m) {
  const Kernels& k = cpu_kernels();
  const std::int64_t B = m.batch, T = m.tokens, D = m.dim, H = m.heads, hd = D / H, R = B * T;
  const double X = 4.0 * static_cast<double>(R * D), F = static_cast<double>(R * D);  // bytes and elements of [R, D]
  const Array x = random({B, T, D}), dy = random({B, T, D}), y = empty_like(x), wide = random({R, 4 * D}), wide_y = empty_like(wide),
              slope = empty_like(wide), gamma = random({D}), beta = random({D}), mean = random({R}), rstd = random({R}), dgamma = empty_like(gamma),
              dbeta = empty_like(gamma), qkv = random({B, T, 3, H, hd}), dqkv = empty_like(qkv), sums = random({B, H, T, 2}), row_scale = random({B}),
              logits = random({B, 1000}), dlogits = empty_like(logits), lse_rows = random({B}), loss = random({}), token = random({B, 1, D}),
              heads = random({B, H, T, hd}), scalar = random({1}), wide_bias = random({4 * D});
  Array labels({B}, DType::i64, Device::cpu);
  k.fill(3, labels);
  std::vector<Row> rows;
  for (auto [label, out, in] : {std::tuple{"qkv", 3 * D, D}, {"proj", D, D}, {"fc1", 4 * D, D}, {"fc2", D, 4 * D}}) {
    const Array input = random({R, in}), w = random({out, in}), b = random({out}), output = random({R, out}), dx = empty_like(input),
                dw = empty_like(w), db = empty_like(b);
    const double flops = 2.0 * static_cast<double>(R * in * out), bytes = 4.0 * static_cast<double>(R * (in + out) + in * out);
    rows.push_back({fmt::format("linear_forward {}", label), bytes, flops, [=, &k] { k.linear_forward({}, input, w, b, output); }});
    rows.push_back({fmt::format("linear_backward {}", label), 2 * bytes, 2 * flops,
                    [=, &k] { k.linear_backward({}, output, input, w, b, {.dx = dx, .dw = dw, .db = db}); }});
  }
  const auto part = [=](const Array& a, int i) { return Heads{a, i * D, T * 3 * D, hd, 3 * D}; };
  const auto plain = [=](const Array& a) { return Heads{a, 0, T * D, hd, D}; };
  const double product = 2.0 * static_cast<double>(B * H * T * T * hd);
  const auto side = static_cast<std::int64_t>(std::sqrt(T - 1));  // of the patch grid
  for (const auto& [p, shape, suffix] : {std::tuple{0.0, DropShape::plain, ""},
                                         {0.1, DropShape::plain, " with DropKey"},
                                         {0.1, DropShape::block, " with DropKey block"},
                                         {0.1, DropShape::cross, " with DropKey cross"}}) {
    const AttentionCall call{.batch = B,
                             .heads = H,
                             .queries = T,
                             .keys = T,
                             .head_dim = hd,
                             .scale = 0.125,
                             .keep = {},
                             .drop_key = key_drop(p, shape, 0, DropSharing::per_entry, {side, side}, T, 5),
                             .dropout = {}};
    rows.push_back({fmt::format("attention_forward{}", suffix), 4 * X, 2 * product,
                    [=, &k] { k.attention_forward(call, part(qkv, 0), part(qkv, 1), part(qkv, 2), plain(y), sums); }});
    rows.push_back({fmt::format("attention_backward{}", suffix), 8 * X, 5 * product, [=, &k] {
                      k.attention_backward(call, plain(dy), part(qkv, 0), part(qkv, 1), part(qkv, 2), sums, part(dqkv, 0), part(dqkv, 1),
                                           part(dqkv, 2));
                    }});
  }
  const auto add = [&](const char* name, double bytes, double operations, std::function<void()> run) {
    rows.push_back({name, bytes, operations, std::move(run)});
  };
  add("gelu_forward erf, y", 8 * X, 0, [=, &k] { k.gelu_forward(Gelu::erf, wide, Array(), wide_y, Array()); });
  add("gelu_forward erf, y and dgelu", 12 * X, 0, [=, &k] { k.gelu_forward(Gelu::erf, wide, wide_bias, wide_y, slope); });
  add("gelu_forward tanh, y and dgelu", 12 * X, 0, [=, &k] { k.gelu_forward(Gelu::tanh, wide, Array(), wide_y, slope); });
  add("layer_norm_forward", 2 * X, 0, [=, &k] { k.layer_norm_forward(x, gamma, beta, 1e-5, y, mean, rstd); });
  add("layer_norm_backward", 3 * X, 0, [=, &k] { k.layer_norm_backward(dy, x, gamma, mean, rstd, y, dgamma, dbeta); });
  add("rms_norm_forward", 2 * X, 0, [=, &k] { k.rms_norm_forward(x, gamma, 1e-5, y, rstd); });
  add("rms_norm_backward", 3 * X, 0, [=, &k] { k.rms_norm_backward(dy, x, gamma, rstd, y, dgamma); });
  add("gated_residual_forward [D]", 3 * X, 0, [=, &k] { k.gated_residual_forward(x, dy, gamma, Array(), y); });
  add("gated_residual_backward [D]", 3 * X, 0, [=, &k] { k.gated_residual_backward(dy, x, gamma, Array(), y, dgamma); });
  add("gated_residual_forward [1], row_scale", 3 * X, 0, [=, &k] { k.gated_residual_forward(x, dy, scalar, row_scale, y); });
  add("gated_residual_backward [1], row_scale", 3 * X, 0, [=, &k] { k.gated_residual_backward(dy, x, scalar, row_scale, y, scalar); });
  add("dropout", 2 * X, 0, [=, &k] { k.dropout(x, 1, 2, drop_threshold(0.1), 0, y); });
  add("binary add", 3 * X, F, [=, &k] { k.binary(Binary::add, x, dy, y); });
  add("binary multiply [D]", 2 * X, F, [=, &k] { k.binary(Binary::multiply, x, gamma, y); });
  add("unary exp", 2 * X, 0, [=, &k] { k.unary(Unary::exp, 0, x, y); });
  add("reduce to a scalar", X, F, [=, &k] { k.reduce(Reduce::sum, x.reshaped({B, T, D}), scalar.reshaped({1, 1, 1})); });
  add("reduce to [D]", X, F, [=, &k] { k.reduce(Reduce::sum, x, dgamma.reshaped({1, 1, D})); });
  add("reduce over tokens", X, F, [=, &k] { k.reduce(Reduce::sum, x, token); });
  add("permute heads", 2 * X, 0, [=, &k] {
    const int axes[] = {0, 2, 1, 3};
    k.permute(x.reshaped({B, T, H, hd}), std::span<const int>(axes), heads);
  });
  add("slice of a token", 2 * X / static_cast<double>(T), 0, [=, &k] { k.slice(x, 1, 0, token); });
  add("softmax_forward [B, 1000]", 8000.0 * static_cast<double>(B), 0, [=, &k] { k.softmax_forward(logits, dlogits); });
  add("cross_entropy_forward [B, 1000]", 4000.0 * static_cast<double>(B), 0,
      [=, &k] { k.cross_entropy_forward(logits, labels, Array(), 0.1, loss, lse_rows); });
  add("cross_entropy_backward [B, 1000]", 8000.0 * static_cast<double>(B), 0,
      [=, &k] { k.cross_entropy_backward(loss, logits, labels, Array(), 0.1, lse_rows, dlogits); });
  const std::int64_t weights = 12 * D * D;
  const Array g = random({weights}), p = random({weights}), m1 = random({weights}), m2 = full_like(g, {weights}, 0.5);
  add("adamw on a block's weights", 28.0 * static_cast<double>(weights), 0, [=, &k] {
    const AdamWUpdate u{
        {.lr = 1e-5, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.05, .correction1 = 1, .correction2 = 1, .gradient_scale = 1},
        g,
        p,
        m1,
        m2};
    k.adamw({&u, 1});
  });
  add("sum_of_squares of them", 4.0 * static_cast<double>(weights), 0, [=, &k] { k.sum_of_squares({&g, 1}); });
  const Array few = random({16}), few_y = empty_like(few), corner = random({4, 4}), corner_y = empty_like(corner);
  add("unary on 16 elements: overhead", 0, 0, [=, &k] { k.unary(Unary::multiply, 0.5, few, few_y); });
  add("matmul of 4 x 4: overhead", 0, 0, [=, &k] { k.matmul(corner, false, corner, false, corner_y); });
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) set_num_threads(std::atoi(argv[1]));
  const std::string filter = argc > 2 ? argv[2] : "";
  fmt::print("{}\n", cpu_description());
  for (const Model& m : {Model{"dim 192", 64, 65, 192, 3}, Model{"dim 64", 64, 17, 64, 2}}) {
    fmt::print("\n{}: {} rows, {} heads, {} tokens\n{:<40} {:>9} {:>8} {:>8}\n", m.name, m.batch * m.tokens, m.heads, m.tokens, "kernel", "ms",
               "GB/s", "GF/s");
    for (const Row& row : rows_of(m)) {
      if (row.name.find(filter) == std::string::npos) continue;
      const double s = seconds(row.run);
      fmt::print("{:<40} {:>9.5f} {:>8.1f} {:>8}\n", row.name, s * 1e3, row.bytes / s * 1e-9,
                 row.operations > 0 ? fmt::format("{:.1f}", row.operations / s * 1e-9) : "");
    }
  }
}
