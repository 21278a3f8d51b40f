// Tests of exact relations between methods, without training data: with special constants, a method equals another
// method, called its parent.
#include <cmath>
#include <map>

#include "nn/init_groups.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr std::int64_t stream_dim = 8;

Tensor stream() { return random_normal({2, 5, stream_dim}, 0, "stream"); }

std::unique_ptr<nn::Stack> make_stack(const nn::MethodChoice& gate, std::int64_t depth = 3, bool final_norm = true) {
  auto stack = std::make_unique<nn::Stack>(
      nn::StackOptions{.dim = stream_dim,
                       .depth = depth,
                       .method = gate,
                       .junctions = nn::transformer_block({.heads = 2}, {.hidden = 4 * stream_dim}),
                       .final_norm = final_norm});
  nn::initialize(*stack, 0);
  return stack;
}

void set_all(const nn::Module& module, const std::string& ending, double value) {
  int count = 0;
  for (const nn::Parameter& p : module.parameters())
    if (p.name.ends_with(ending)) {
      copy_into(full(p.value.shape(), value, {p.value.dtype(), p.value.device()}).array(), p.value.array());
      ++count;
    }
  REQUIRE(count > 0);
}

// Gives parameters with the same name the same values, larger than initial values, so that the branches have an effect.
void shake_weights(const nn::Module& module) {
  for (const nn::Parameter& p : module.parameters())
    if (p.role == nn::Role::weight)
      copy_into((random_normal(p.value.shape(), 1, p.name) * 0.3).array(), p.value.array());
}

std::vector<double> output(const nn::Stack& stack) { return stack(stream()).values(); }

}  // namespace

TEST_CASE("a method with its special constants equals its parent") {
  const DefaultsScope f64(reference_f64);
  const auto shaken = [](const nn::MethodChoice& gate, std::int64_t depth = 3, bool final_norm = true) {
    auto stack = make_stack(gate, depth, final_norm);
    shake_weights(*stack);
    return stack;
  };
  const std::vector<double> as_pre = output(*shaken("pre")), as_post = output(*shaken("post"));
  const auto error = [&](const nn::Stack& s, const std::vector<double>& parent) {
    return relative_error(output(s), parent);
  };
  for (const nn::Method& m : {nn::methods::scalar_gate(1.0), nn::methods::layerscale(1.0),
                              nn::methods::branch_scale(1.0), nn::methods::act_norm()})
    CHECK(error(*shaken(m), as_pre) < 1e-14);
  CHECK(error(*shaken(nn::methods::deepnorm(1)), as_post) < 1e-14);
  CHECK(output(*shaken(nn::methods::mix_ln(0))) == as_pre);  // no post-norm blocks, and nothing else
  CHECK(output(*shaken(nn::methods::mix_ln(1))) == as_post);
  CHECK(error(*shaken(nn::methods::hyper_connections(1)), as_pre) < 1e-13);
  CHECK(error(*shaken(nn::methods::hyper_connections(4)), as_pre) < 1e-6);  // the norm of the sum has the same eps
  CHECK(error(*shaken("layernorm_scaling", 1), output(*shaken("pre", 1))) < 1e-14);
  CHECK(shaken("residual_dual", 3, false)->run(stream()).x.values() ==
        shaken("post", 3, false)->run(stream()).x.values());
  const auto admin = shaken("admin"), values = shaken("value_residual");
  set_all(*admin, "omega", 1);
  CHECK(error(*admin, as_post) < 1e-14);
  for (const nn::Parameter& p : values->parameters())  // every block keeps its own values
    if (p.name.ends_with("lambdas")) copy_into(tensor({0, 1}, {2}).array(), p.value.array());
  CHECK(error(*values, as_pre) < 1e-14);

  nn::Method without_norms = nn::methods::normformer();  // NormFormer with its extra norms taken out
  std::vector<Handle> removed;
  without_norms.build = [&, build = without_norms.build](const nn::GateContext& c) {
    nn::BlockGates gates = build(c);
    for (const auto& [name, module] : gates.modules)
      if (name.ends_with("_norm"))
        removed.push_back(dynamic_cast<nn::Layer&>(*module).on_forward(
            [](const nn::Layer&, const Tensor& in, const Tensor&) { return in; }));
    return gates;
  };
  CHECK(error(*shaken(without_norms), as_pre) < 1e-14);
  CHECK(removed.size() == 6);
}

TEST_CASE("depth-muP and CompleteP equal pre-norm bit for bit at their base depth, also in training") {
  for (const bool complete : {false, true}) {
    const nn::Method at_base = complete ? nn::methods::complete_p(4) : nn::methods::depth_mup(4);
    nn::ViT a({.image = 16, .channels = 1, .dim = 12, .depth = 4, .heads = 3, .method = at_base}),
        b({.image = 16, .channels = 1, .dim = 12, .depth = 4, .heads = 3, .method = "pre"});
    const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 1, 2, 3}, {4});
    for (nn::ViT* model : {&a, &b}) {
      nn::AdamW optimizer(model->parameters(), {.lr = 1e-2});
      for (int step = 0; step < 3; ++step) optimizer.step(backward(cross_entropy((*model)(images), labels)));
    }
    CHECK(a(images).values() == b(images).values());
  }
}

TEST_CASE("depth-muP and CompleteP have the expected multiplier, learning rates and eps beyond their base depth") {
  const DefaultsScope f64(reference_f64);
  const auto factors = [](const nn::MethodChoice& gate) {
    const auto stack = make_stack(gate, 8, true);
    std::map<std::string, std::pair<double, double>> all;
    for (const nn::Parameter& p : stack->parameters()) all[p.name] = {p.lr_factor(), p.eps_factor()};
    return all;
  };
  const auto mup = factors(nn::methods::depth_mup(2)), complete = factors(nn::methods::complete_p(2));
  for (const char* name : {"blocks.3.attn.qkv.weight", "blocks.3.mlp.fc2.bias", "blocks.3.norm1.weight"}) {
    CHECK(mup.at(name).first == Approx(0.5));  // (8/2)^-1/2
    CHECK(mup.at(name).second == Approx(0.5));
    CHECK(complete.at(name).first == Approx(1));
    CHECK(complete.at(name).second == Approx(0.25));
  }
  CHECK(mup.at("norm.weight") == std::pair{1.0, 1.0});  // norm.weight is not a parameter of a block
  // The branch of a block is multiplied by m: y - x is linear in m.
  const auto gain = [](const nn::Method& m) {
    const auto stack = make_stack(m, 8, false);
    double largest = 0;
    const Tensor x = stream();
    std::vector<Handle> watch;
    watch.push_back(stack->blocks()[0].observe([&](const nn::JunctionPass& j) {
      if (j.branch.kind() == "attn")
        largest = mean((j.output - j.before.x) * (j.output - j.before.x)).item() /
                  mean(j.branch_value * j.branch_value).item();
    }));
    stack->run(x);
    return std::sqrt(largest);
  };
  CHECK(gain(nn::methods::depth_mup(2)) == Approx(0.5));
  CHECK(gain(nn::methods::complete_p(2)) == Approx(0.25));
  CHECK(gain(nn::methods::branch_scale()) == Approx(std::pow(8, -0.5)));
}

TEST_CASE("the branch of Peri-LN does not depend on the size of its weights and adds a mean square of 1") {
  const DefaultsScope f64(reference_f64);
  const auto added = [](double scale) {
    const auto s = make_stack("peri_ln", 1, false);
    shake_weights(*s);
    for (const nn::Parameter& p : s->parameters())
      if (p.name.ends_with("attn.proj.weight")) copy_into((p.value.detach() * scale).array(), p.value.array());
    Tensor first;
    const Handle watch = s->blocks()[0].observe([&](const nn::JunctionPass& j) {
      if (!first.defined()) first = j.output - j.before.x;
    });
    s->run(stream());
    return first;
  };
  CHECK(relative_error(added(10), added(1)) < 1e-4);  // equal up to the eps of the norm
  CHECK(mean(added(1) * added(1)).item() == Approx(1).epsilon(1e-4));
}

TEST_CASE("in Admin's profile, omega grows with the measured variances, in order") {
  const DefaultsScope f64(reference_f64);
  const auto stack = make_stack("admin_profile", 3, false);
  shake_weights(*stack);
  const auto variance = [](const Tensor& x) { return mean(x * x).item() - std::pow(mean(x).item(), 2); };
  nn::calibrate(*stack, stream());
  std::vector<double> omega;
  for (const nn::Parameter& p : stack->parameters())
    if (p.name.ends_with("omega")) {
      omega.push_back(p.value.values()[0]);
      for (double v : p.value.values()) CHECK(v == omega.back());
    }
  REQUIRE(omega.size() == 6);
  CHECK(omega[0] == 1);
  double expected = 1;
  std::size_t i = 0;
  std::vector<Handle> watch;
  for (auto& block : stack->blocks())
    watch.push_back(block.observe([&](const nn::JunctionPass& j) {
      CHECK(omega[i] == Approx(expected));
      expected = std::sqrt(omega[i] * omega[i] * variance(j.before.x) + variance(j.branch_value));
      ++i;
    }));
  stack->run(stream());
  CHECK(i == 6);
  CHECK(expected > 1.5);
}

TEST_CASE("after the first batch, every channel of ActNorm's added term has mean 0 and variance 1") {
  const DefaultsScope f64(reference_f64);
  const auto stack = make_stack("act_norm", 3, false);
  nn::calibrate(*stack, stream());
  int seen = 0;
  std::vector<Handle> watch;
  for (auto& block : stack->blocks())
    watch.push_back(block.observe([&](const nn::JunctionPass& j) {
      const Tensor rows = reshape(j.output - j.before.x, {10, stream_dim});
      for (double m : mean(rows, {0}).values()) CHECK(std::abs(m) < 1e-9);
      for (double v : mean(rows * rows, {0}).values()) CHECK(v == Approx(1).epsilon(1e-6));
      ++seen;
    }));
  stack->run(stream());
  CHECK(seen == 6);
  CHECK(stack->training());  // calibrate() restores the mode
}

TEST_CASE("calibrate changes nothing in a model without data-dependent values and an exception leaves no trace") {
  const auto stack = make_stack("layerscale");
  nn::calibrate(*stack, stream());
  nn::audit_init(*stack, 0);
  const auto profiled = make_stack("admin_profile");
  CHECK_THAT(error_of([&] {
               nn::calibrate(*profiled, random_normal({2, 5, stream_dim + 1}, 0, "x"));
             }),
             contains("expected"));
  CHECK(nn::detail::calibrating() == nullptr);
  CHECK(profiled->training());
}

TEST_CASE("methods scale the initial weights that their papers name") {
  const auto ratio = [](const std::string& gate, const std::string& name, std::int64_t depth = 24) {
    const auto of = [&](const std::string& method) {
      const auto s = make_stack(method, depth);
      for (const nn::Parameter& p : s->parameters())
        if (p.name == name) return std::sqrt(mean(p.value * p.value).item());
      FAIL("no parameter " << name);
      return 0.0;
    };
    return of(gate) / of("pre");
  };
  const auto near = [](double value) { return Approx(value).epsilon(1e-3); };
  for (const char* name : {"blocks.5.attn.proj.weight", "blocks.5.mlp.fc1.weight", "blocks.5.mlp.fc2.weight"}) {
    CHECK(ratio("t_fixup", name) == near(0.3027));
    CHECK(ratio("t_fixup_ln", name) == near(0.3027));
    CHECK(ratio("deepnorm", name) == near(0.2686));
    CHECK(ratio("sub_ln", name) == near(1.9675));
  }
  CHECK(ratio("fixup", "blocks.5.mlp.fc1.weight") == near(0.1443));   // (2 24)^-1/2
  CHECK(ratio("fixup", "blocks.5.attn.qkv.weight") == near(0.5246));  // (2 24)^-1/6
  for (const char* name : {"blocks.5.attn.proj.weight", "blocks.5.mlp.fc2.weight"}) CHECK(ratio("fixup", name) == 0);
  CHECK(ratio("gpt2_init", "blocks.5.mlp.fc2.weight") == near(0.1443));
  CHECK(ratio("gpt2_init", "blocks.5.attn.proj.weight") == near(0.1443));
  CHECK(ratio("gpt2_init", "blocks.5.mlp.fc1.weight") == 1);
  CHECK(ratio("sandwich", "blocks.5.mlp.fc2.weight") == near(0.1443));
  CHECK(ratio("peri_ln", "blocks.5.mlp.fc2.weight") == 1);
  // In the packed projection, only the rows of the values (v) are scaled.
  const auto parts = [](const std::string& gate) {
    const auto s = make_stack(gate, 24), plain = make_stack("pre", 24);
    std::vector<double> r;
    for (const auto& [p, q] : {std::pair{s->parameters(), plain->parameters()}})
      for (std::size_t i = 0; i < q.size(); ++i)
        for (const nn::Parameter& scaled : p)
          if (q[i].name == "blocks.2.attn.qkv.weight" && scaled.name == q[i].name)
            for (int part = 0; part < 3; ++part) {
              const auto rms = [&](const Tensor& w) {
                const Tensor rows = slice(w, 0, part * stream_dim, (part + 1) * stream_dim);
                return std::sqrt(mean(rows * rows).item());
              };
              r.push_back(rms(scaled.value) / rms(q[i].value));
            }
    return r;
  };
  for (const auto& [gate, factor] : {std::pair{"t_fixup", 0.3027}, {"deepnorm", 0.2686}, {"sub_ln", 1.9675}}) {
    const std::vector<double> r = parts(gate);
    REQUIRE(r.size() == 3);
    CHECK(r[0] == 1);
    CHECK(r[1] == 1);
    CHECK(r[2] == near(factor));
  }
}

TEST_CASE("audit_init finds tensors that do not start as declared") {
  const auto stack = make_stack("layerscale", 2);
  nn::audit_init(*stack, 0);
  nn::initialize(*stack, 0);  // a repeated call gives the same values
  nn::audit_init(*stack, 0);
  CHECK_THAT(error_of([&] { nn::audit_init(*stack, 1); }),
             contains("[audit_init] expected every tensor of Stack to start as its Init declares for seed 1"));
  set_all(*stack, "blocks.1.gate1.gamma", 1);  // sets gates to 1, as some other code bases do by mistake
  CHECK_THAT(error_of([&] { nn::audit_init(*stack, 0); }),
             contains("got 1 that differ") &&
                 contains("blocks.1.gate1.gamma [8]: declared 0.1, element 0 would be 0.1, found 1"));
  // Changes the declaration after initialize().
  stack->blocks()[0].branch("mlp").first().weight_init() = nn::Init::xavier_uniform();
  CHECK_THAT(error_of([&] { nn::audit_init(*stack, 0); }),
             contains("got 2 that differ") && contains("blocks.0.mlp.fc1.weight [32, 8]: declared xavier_uniform"));
}

TEST_CASE("calibrate restores every module's mode and observers are not called") {
  const auto stack = make_stack("act_norm");
  stack->blocks()[1].eval();
  int seen = 0;
  const Handle watch = stack->blocks()[0].observe([&](const nn::JunctionPass&) { ++seen; });
  nn::calibrate(*stack, stream());
  CHECK(seen == 0);
  CHECK(stack->training());
  CHECK_FALSE(stack->blocks()[1].training());
  CHECK_FALSE(stack->blocks()[1].branch("mlp").training());
  CHECK(stack->blocks()[2].training());
}

TEST_CASE("init_groups puts parameters of the same declaration into one group") {
  const auto stack = make_stack("fixup", 3);
  bool found = false;
  for (const nn::InitGroup& g : nn::init_groups(*stack))
    if (g.names == "blocks.*.mlp.fc1.weight") {
      found = true;
      CHECK(g.tensors == 3);
      CHECK(g.init == "truncated_normal(0.02) * 0.4082");
      CHECK(g.shape == Shape{32, 8});
      CHECK(g.role == nn::Role::weight);
      CHECK(g.decay_factor == 1);
    }
  CHECK(found);
}

TEST_CASE("the causal attention of a token does not depend on later tokens, in training and in evaluation") {
  nn::Attention layer({.dim = stream_dim, .heads = 2, .causal = true});
  nn::initialize(layer, 0);
  const Tensor x = stream(), changed = concat({slice(x, 1, 0, 3), random_normal({2, 2, stream_dim}, 1, "other")}, 1);
  for (const bool training : {true, false}) {
    layer.train(training);
    CHECK(slice(layer(x), 1, 0, 3).values() == slice(layer(changed), 1, 0, 3).values());
    CHECK(slice(layer(x), 1, 3, 5).values() != slice(layer(changed), 1, 3, 5).values());
  }
}
