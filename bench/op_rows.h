// The kernels of a training step that bench_ops times, with the shapes of three models.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "core/backend.h"
#include "core/drop_key.h"

namespace plumb::bench {

using Call = std::function<void()>;

struct Model {
  std::string name;
  std::int64_t dim, tokens, batch, heads;
};

inline const std::vector<Model> models{
    {"dim192", 192, 65, 64, 3}, {"dim64", 64, 17, 64, 2}, {"dim384", 384, 65, 32, 6}};

struct Row {
  std::string name;
  // Bytes and FLOPs per call, as the algorithm needs them. If a number is 0, only the overhead of the call is of
  // interest.
  double bytes, flops;
  std::function<Call()> make;  // allocates a new set of operands
};

// Writing the values touches the memory before the kernel is timed.
inline Out like(const Array& a) { return random_array(a.shape()); }

inline void linear_rows(const Model& m, std::vector<Row>& rows) {
  using After = LinearCall::After;
  const Kernels& k = cpu_kernels();
  const std::int64_t R = m.batch * m.tokens, D = m.dim;
  // The calls of a training step: norm before qkv and fc1, GELU after fc1, residual junction after proj and fc2.
  struct Layer {
    const char* label;
    std::int64_t out, in;
    bool norm;
    After after;
  };
  const Layer layers[] = {{"norm, qkv", 3 * D, D, true, After::nothing},
                          {"proj, junction", D, D, false, After::residual},
                          {"norm, fc1, gelu", 4 * D, D, true, After::gelu},
                          {"fc2, junction", D, 4 * D, false, After::residual}};
  const auto call_of = [R](const Layer& l) {
    LinearCall call{.after = l.after};
    if (l.norm) call.gamma = random_array({l.in}), call.beta = like(call.gamma), call.eps = 1e-5;
    if (l.after == After::residual) call.skip = random_array({R, l.out}), call.gate = random_array({l.out});
    return call;
  };
  const auto kept_of = [R](const Layer& l) {
    LinearKeptOut kept;
    if (l.norm) kept.mean = random_array({R}), kept.rstd = like(kept.mean);
    if (l.after == After::gelu) kept.slope = random_array({R, l.out});
    return kept;
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, int products,
                          const std::function<Call()>& make) {
    const double flops = 2.0 * static_cast<double>(R * in * out),
                 bytes = 4.0 * static_cast<double>(R * (in + out) + in * out);
    rows.push_back({name, products * bytes, products * flops, make});
  };
  for (const Layer& l : layers) {
    const auto operands = [=] {
      return std::array{random_array({R, l.in}), random_array({l.out, l.in}), random_array({l.out}),
                        random_array({R, l.out})};
    };
    linear(fmt::format("linear_forward {}", l.label), l.out, l.in, 1, [=, &k] {
      const auto [x, w, b, y] = operands();
      return [=, &k, x = x, w = w, b = b, y = y, call = call_of(l), kept = kept_of(l)] {
        k.linear_forward(call, x, w, b, kept, y);
      };
    });
    linear(fmt::format("linear_backward {}", l.label), l.out, l.in, 2, [=, &k] {
      const auto [x, w, b, dy] = operands();
      const LinearGradients g{.dx = like(x),
                              .dw = like(w),
                              .db = like(b),
                              .dgamma = l.norm ? random_array({l.in}) : Out(),
                              .dbeta = l.norm ? random_array({l.in}) : Out(),
                              .dgate = l.after == After::residual ? random_array({l.out}) : Out()};
      return [=, &k, x = x, w = w, b = b, dy = dy, call = call_of(l), kept = kept_of(l)] {
        k.linear_backward(call, {kept.mean, kept.rstd, kept.slope}, dy, x, w, b, g);
      };
    });
  }
  const auto plain = [&](const char* name, bool dw) {
    linear(name, 4 * D, D, 1, [=, &k] {
      const Out x = random_array({R, D}), w = random_array({4 * D, D}), dy = random_array({R, 4 * D}),
                d = like(dw ? w : x);
      return [=, &k] {
        k.linear_backward({}, {}, dy, x, w, Array(), dw ? LinearGradients{.dw = d} : LinearGradients{.dx = d});
      };
    });
  };
  plain("linear_backward fc1: dx alone", false);
  plain("linear_backward fc1: dw alone", true);
}

inline void attention_rows(const Model& m, std::vector<Row>& rows) {
  const Kernels& k = cpu_kernels();
  const std::int64_t B = m.batch, T = m.tokens, D = m.dim, H = m.heads, hd = D / H;
  const double X = 4.0 * static_cast<double>(B * T * D), product = 2.0 * static_cast<double>(B * H * T * T * hd);
  const auto part = [=]<class A>(const A& a, int i) { return HeadsOf<A>{a, i * D, T * 3 * D, hd, 3 * D}; };
  const auto plain = [=]<class A>(const A& a) { return HeadsOf<A>{a, 0, T * D, hd, D}; };
  const auto side = static_cast<std::int64_t>(std::sqrt(T - 1));  // side: the side of the patch grid
  for (const auto& [p, shape, suffix] : {std::tuple{0.0, DropShape::plain, ""},
                                         {0.1, DropShape::plain, ", DropKey"},
                                         {0.1, DropShape::block, ", DropKey block"},
                                         {0.1, DropShape::cross, ", DropKey cross"}}) {
    const AttentionCall call{.batch = B,
                             .heads = H,
                             .queries = T,
                             .keys = T,
                             .head_dim = hd,
                             .scale = 1 / std::sqrt(static_cast<double>(hd)),
                             .keep = {},
                             .drop_key = key_mask(p, shape, 0, DropSharing::per_entry, {side, side}, T, 5),
                             .dropout = {}};
    rows.push_back({fmt::format("attention_forward{}", suffix), 4 * X, 2 * product, [=, &k] {
                      const Array qkv = random_array({B, T, 3, H, hd});
                      const Out y = random_array({B, T, D}), sums = random_array({B, H, T, 2});
                      return [=, &k] {
                        k.attention_forward(call, part(qkv, 0), part(qkv, 1), part(qkv, 2), plain(y), sums);
                      };
                    }});
    rows.push_back({fmt::format("attention_backward{}", suffix), 7 * X, 5 * product, [=, &k] {
                      const Array qkv = random_array({B, T, 3, H, hd}), dy = random_array({B, T, D});
                      const Out dqkv = like(qkv), sums = random_array({B, H, T, 2});
                      k.attention_forward(call, part(qkv, 0), part(qkv, 1), part(qkv, 2), plain(like(dy)), sums);
                      return [=, &k] {
                        k.attention_backward(call, plain(dy), part(qkv, 0), part(qkv, 1), part(qkv, 2), sums,
                                             part(dqkv, 0), part(dqkv, 1), part(dqkv, 2));
                      };
                    }});
  }
}

// Kernels on activations [B, T, D] or [R, 4 D]. X is the number of bytes of [B, T, D].
inline void activation_rows(const Model& m, std::vector<Row>& rows) {
  const Kernels& k = cpu_kernels();
  const std::int64_t B = m.batch, T = m.tokens, D = m.dim, H = m.heads, R = B * T;
  const double X = 4.0 * static_cast<double>(R * D);
  const auto add = [&](const std::string& name, double bytes, std::function<Call()> make) {
    rows.push_back({name, bytes, 0, std::move(make)});
  };
  const auto x_array = [=] { return random_array({B, T, D}); };
  const auto wide_array = [=] { return random_array({R, 4 * D}); };

  for (const auto& [form, name] : {std::pair{Gelu::erf, "gelu_forward erf: y"}, {Gelu::tanh, "gelu_forward tanh: y"}})
    add(name, 8 * X, [=, &k, form = form] {
      const Out x = wide_array(), b = random_array({4 * D}), y = like(x);
      return [=, &k] { k.gelu_forward(form, x, b, y, Out()); };
    });
  for (const auto& [form, name] :
       {std::pair{Gelu::erf, "gelu_forward erf: y, dgelu"}, {Gelu::tanh, "gelu_forward tanh: y, dgelu"}})
    add(name, 12 * X, [=, &k, form = form] {
      const Out x = wide_array(), b = random_array({4 * D}), y = like(x), slope = like(x);
      return [=, &k] { k.gelu_forward(form, x, b, y, slope); };
    });
  add("binary multiply [R, 4 D]", 12 * X, [=, &k] {
    const Out a = wide_array(), b = like(a), y = like(a);
    return [=, &k] { k.binary(Binary::multiply, a, b, y); };
  });
  add("binary add", 3 * X, [=, &k] {
    const Out a = x_array(), b = like(a), y = like(a);
    return [=, &k] { k.binary(Binary::add, a, b, y); };
  });
  add("binary multiply [D]", 2 * X, [=, &k] {
    const Out a = x_array(), gamma = random_array({D}), y = like(a);
    return [=, &k] { k.binary(Binary::multiply, a, gamma, y); };
  });
  add("layer_norm_forward", 2 * X, [=, &k] {
    const Out x = x_array(), gamma = random_array({D}), beta = like(gamma), y = like(x), mean = random_array({R}),
              rstd = like(mean);
    return [=, &k] { k.layer_norm_forward(x, gamma, beta, 1e-5, y, mean, rstd); };
  });
  add("layer_norm_backward", 3 * X, [=, &k] {
    const Out dy = x_array(), x = like(dy), gamma = random_array({D}), mean = random_array({R}), rstd = like(mean),
              dx = like(x);
    const Out dgamma = like(gamma), dbeta = like(gamma);
    return [=, &k] { k.layer_norm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta); };
  });
  add("rms_norm_forward", 2 * X, [=, &k] {
    const Out x = x_array(), gamma = random_array({D}), y = like(x), rstd = random_array({R});
    return [=, &k] { k.rms_norm_forward(x, gamma, 1e-5, y, rstd); };
  });
  add("rms_norm_backward", 3 * X, [=, &k] {
    const Out dy = x_array(), x = like(dy), gamma = random_array({D}), rstd = random_array({R}), dx = like(x),
              dgamma = like(gamma);
    return [=, &k] { k.rms_norm_backward(dy, x, gamma, rstd, dx, dgamma); };
  });
  for (const auto& [gates, scaled, suffix] : {std::tuple{D, false, "[D]"}, {std::int64_t{1}, true, "[1], row_scale"}}) {
    add(fmt::format("gated_residual_forward {}", suffix), 3 * X, [=, &k, gates = gates, scaled = scaled] {
      const Out skip = x_array(), branch = like(skip), y = like(skip), gate = random_array({gates}),
                rows_of = scaled ? random_array({B}) : Out();
      return [=, &k] { k.gated_residual_forward(skip, branch, gate, rows_of, y); };
    });
    add(fmt::format("gated_residual_backward {}", suffix), 3 * X, [=, &k, gates = gates, scaled = scaled] {
      const Out dy = x_array(), branch = like(dy), dbranch = like(dy), gate = random_array({gates}), dgate = like(gate);
      const Out rows_of = scaled ? random_array({B}) : Out();
      return [=, &k] { k.gated_residual_backward(dy, branch, gate, rows_of, dbranch, dgate); };
    });
  }
  add("dropout", 2 * X, [=, &k] {
    const Out x = x_array(), y = like(x);
    return [=, &k] { k.dropout(x, 1, 2, drop_threshold(0.1), 0, y); };
  });
  add("unary exp", 2 * X, [=, &k] {
    const Out x = x_array(), y = like(x);
    return [=, &k] { k.unary(Unary::exp, 0, x, y); };
  });
  add("reduce to a scalar", X, [=, &k] {
    const Out x = x_array(), y = random_array({1, 1, 1});
    return [=, &k] { k.reduce(Reduce::sum, x, y); };
  });
  add("reduce to [D]", X, [=, &k] {
    const Out x = x_array(), y = random_array({1, 1, D});
    return [=, &k] { k.reduce(Reduce::sum, x, y); };
  });
  add("reduce over tokens", X, [=, &k] {
    const Out x = x_array(), y = random_array({B, 1, D});
    return [=, &k] { k.reduce(Reduce::sum, x, y); };
  });
  add("permute heads", 2 * X, [=, &k] {
    const Out x = random_array({B, T, H, D / H}), y = random_array({B, H, T, D / H});
    return [=, &k] {
      const int axes[] = {0, 2, 1, 3};
      k.permute(x, std::span<const int>(axes), y);
    };
  });
  add("slice of a token", 2 * X / static_cast<double>(T), [=, &k] {
    const Out x = x_array(), y = random_array({B, 1, D});
    return [=, &k] { k.slice(x, 1, 0, y); };
  });
}

// Adds the loss for 1000 classes, and the optimizer for the weights of one block.
inline void loss_and_optimizer_rows(const Model& m, std::vector<Row>& rows) {
  const Kernels& k = cpu_kernels();
  const std::int64_t B = m.batch, weights = 12 * m.dim * m.dim;
  const double logits = 4000.0 * static_cast<double>(B), block = 4.0 * static_cast<double>(weights);
  const auto add = [&](const std::string& name, double bytes, std::function<Call()> make) {
    rows.push_back({name, bytes, 0, std::move(make)});
  };
  add("softmax_forward [B, 1000]", 2 * logits, [=, &k] {
    const Out x = random_array({B, 1000}), y = like(x);
    return [=, &k] { k.softmax_forward(x, y); };
  });
  for (const bool backward : {false, true})
    add(backward ? "cross_entropy_backward [B, 1000]" : "cross_entropy_forward [B, 1000]", (backward ? 2 : 1) * logits,
        [=, &k] {
          const Out x = random_array({B, 1000}), dx = like(x), sums = random_array({B, 2}), loss = random_array({}),
                    labels(Array({B}, DType::i64, Device::cpu));
          k.fill(3, labels);
          k.cross_entropy_forward(x, labels, Array(), 0.1, loss, sums);
          return backward ? Call([=, &k] { k.cross_entropy_backward(loss, x, labels, Array(), 0.1, sums, dx); })
                          : Call([=, &k] { k.cross_entropy_forward(x, labels, Array(), 0.1, loss, sums); });
        });
  add("adamw on a block's weights", 7 * block, [=, &k] {
    const Out g = random_array({weights}), p = like(g), moment1 = like(g), moment2 = full_like(g, {weights}, 0.5);
    const AdamWStep s{.lr = 1e-5,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .eps = 1e-8,
                      .weight_decay = 0.05,
                      .correction1 = 1,
                      .correction2 = 1};
    return [=, &k, u = AdamWUpdate{s, g, p, moment1, moment2}] { k.adamw({&u, 1}, {}); };
  });
  add("sum_of_squares of them", block, [=, &k] {
    const Out g = random_array({weights});
    return [=] { sum_of_squares(g); };
  });
  add("unary on 16 elements: overhead", 0, [=, &k] {
    const Out x = random_array({16}), y = like(x);
    return [=, &k] { k.unary(Unary::multiply, 0.5, x, y); };
  });
  add("linear_forward 4 x 4: overhead", 0, [=, &k] {
    const Out x = random_array({4, 4}), w = like(x), y = like(x);
    return [=, &k] { k.linear_forward({}, x, w, Array(), {}, y); };
  });
}

inline std::vector<Row> rows_of(const Model& m) {
  std::vector<Row> rows;
  linear_rows(m, rows);
  attention_rows(m, rows);
  activation_rows(m, rows);
  loss_and_optimizer_rows(m, rows);
  return rows;
}

}  // namespace plumb::bench
