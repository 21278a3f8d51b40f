// Mistakes with gates: registration, names, and gates that break the rules of a block.
#include "nn/conformance/method_check.h"
#include "nn/gates/gate.h"
#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"
#include "nn/io/weights.h"
#include "nn/models/vit.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;

namespace {

struct Plain : nn::Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
};

nn::Stack stack_of(const nn::MethodChoice& gate) {
  return nn::Stack(
      {.dim = 8, .depth = 1, .method = gate, .junctions = nn::transformer_block({.heads = 2}, {.hidden = 32})});
}

template <class G>
nn::Method method() {
  return {.name = "mine", .build = nn::gates_from<G>};
}

// One forward and backward pass of a stack with this gate.
template <class G>
Tensor pass(nn::Norm norm = nn::Norm::pre) {
  nn::Method m = method<G>();
  m.norm = norm;
  nn::Stack stack(
      {.dim = 8, .depth = 1, .method = m, .junctions = nn::transformer_block({.heads = 2}, {.hidden = 32})});
  nn::initialize(stack, 0);
  return stack(random_normal({2, 5, 8}, 0, "x"));
}

}  // namespace

TEST_CASE("misuse: a gate without a name, or under a name that exists, stands for all or has other characters") {
  CHECK_REFUSED(nn::register_method<Plain>("pre"), "expected a new name, got \"pre\"");
  CHECK_REFUSED(nn::register_method<Plain>("all"), "another name than \"all\"");
  for (const char* name : {"", "my gate", "MyGate", "my.gate", "my-gate"})
    CHECK_REFUSED(nn::register_method<Plain>(name),
                  fmt::format("lower-case letters, digits and underscores, got \"{}\"", name));
}
TEST_CASE("misuse: a method that builds nothing") {
  CHECK_REFUSED(nn::register_method("builds_nothing", {}),
                "expected a Method with a build function for \"builds_nothing\", got one without");
  CHECK_REFUSED(nn::MethodChoice(nn::Method{}), "expected a Method with a build function");
}
TEST_CASE("misuse: a mistyped gate in code") {
  CHECK_REFUSED(nn::MethodChoice("layer_scale"), "did you mean 'layerscale'?");
  CHECK_REFUSED(nn::MethodChoice(""), "[gate] expected the name of a residual method, got \"\"");
  CHECK_REFUSED(nn::ViT({.method = "transformer"}), "known: post, pre, rezero");
  CHECK_REFUSED(nn::check_method("rezro"), "did you mean 'rezero'?");
}

TEST_CASE("misuse: a gate that returns another shape") {
  struct OneToken : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return slice(skip + branch, 1, 0, 1); }
  };
  CHECK_REFUSED(pass<OneToken>(), "[gate] expected combine to return the shape of the stream [2, 5, 8], got [2, 1, 8]");
  CHECK_REFUSED(pass<OneToken>(nn::Norm::post),
                "[gate] expected combine to return the shape of the stream [2, 5, 8], got [2, 1, 8]");
}
TEST_CASE("misuse: a gate that returns another dtype") {
  struct Doubles : nn::Gate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return cast(skip + branch, DType::f64); }
  };
  CHECK_REFUSED(pass<Doubles>(),
                "[gate] expected combine to return the stream's dtype f32, got f64; convert the result with cast()");
  CHECK_REFUSED(pass<Doubles>(nn::Norm::none), "expected combine to return the stream's dtype f32, got f64");
}
TEST_CASE("misuse: a gate that returns nothing") {
  struct Nothing : nn::Gate {
    Tensor combine(const Tensor&, const Tensor&) const override { return {}; }
  };
  CHECK_REFUSED(pass<Nothing>(), "expected combine to return a stream of shape [2, 5, 8], got an undefined tensor");
  CHECK_REFUSED(pass<Nothing>(nn::Norm::post), "got an undefined tensor");
}
TEST_CASE("misuse: a gate whose residual sum leaves no stream") {
  struct Lost : Plain {
    void join(nn::Stream& s, const Tensor&, const Tensor&, const nn::Layer*) const override { s.x = {}; }
  };
  CHECK_REFUSED(pass<Lost>(), "got an undefined tensor");
}
TEST_CASE("misuse: a gate with another width") {
  struct Narrow : nn::ScaleGate {
    Narrow() { scale_ = parameter("gamma", {3}, nn::Init::constant(1), Role::gate); }
  };
  CHECK_REFUSED(pass<Narrow>(), "[3]");
}
TEST_CASE("misuse: a parameter that is registered twice or has a dot in its name") {
  struct Twice : Plain {
    Tensor a = parameter("a", {1}, nn::Init::constant(1), Role::gate),
           b = parameter("a", {1}, nn::Init::constant(1), Role::gate);
  };
  struct Dotted : Plain {
    Tensor a = parameter("a.b", {1}, nn::Init::constant(1), Role::gate);
  };
  CHECK_REFUSED(stack_of(method<Twice>()), "expected a new name in Twice, got \"a\", which is taken");
  CHECK_REFUSED(stack_of(method<Dotted>()), "expected a parameter name without dots, got \"a.b\"");
}
TEST_CASE("misuse: a method whose gates are not passed on") {
  static Plain outside;
  CHECK_REFUSED(stack_of(nn::Method{.name = "mine", .build = [](const nn::GateContext&) { return nn::BlockGates{}; }}),
                "to build a gate for each of 2 branches, got 0");
  CHECK_REFUSED(stack_of(nn::Method{.name = "mine",
                                    .build =
                                        [](const nn::GateContext&) {
                                          nn::BlockGates gates;
                                          gates.gates = {&outside, &outside};
                                          return gates;
                                        }}),
                "to list its gates in BlockGates::modules");
  CHECK_REFUSED(stack_of(nn::Method{.name = "mine",
                                    .build =
                                        [](const nn::GateContext& c) {
                                          nn::BlockGates gates = nn::gates_from<Plain>(c);
                                          gates.modules.emplace_back("none", nullptr);
                                          return gates;
                                        }}),
                "got null for \"none\"");
}
TEST_CASE("misuse: a method whose norm_layer makes no layer") {
  nn::Method null = method<Plain>();
  null.norm_layer = [](std::int64_t, double) { return std::unique_ptr<nn::Layer>(); };
  CHECK_REFUSED(stack_of(null), "norm_layer of method \"mine\" to make a layer, got null");
}
TEST_CASE("misuse: constants of methods out of range") {
  CHECK_REFUSED(stack_of(nn::methods::hyper_connections(0)),
                "[hyper_connections] expected streams to be an integer in [1, 1024], got 0");
  CHECK_REFUSED(stack_of(nn::methods::depth_mup(0)), "[depth_mup] expected base_depth to be a number above 0, got 0");
  CHECK_REFUSED(stack_of(nn::methods::mix_ln(1.5)), "[mix_ln] expected post_share to be a number in [0, 1], got 1.5");
  CHECK_REFUSED(stack_of(nn::methods::layerscale(std::nan(""))),
                "[layerscale] expected init to be a finite number, got nan");
}
TEST_CASE("misuse: constants of methods that are unknown or malformed") {
  CHECK_REFUSED(nn::MethodChoice("layerscale:eps=1"),
                "[layerscale] expected a constant of the method (init), got \"eps\"");
  CHECK_REFUSED(nn::MethodChoice("pre:init=1"),
                "[pre] expected no constant, got \"init\": the method has no constants");
  for (const char* text : {"layerscale:", "layerscale:init", "layerscale:init=", "layerscale:init=1e", "layerscale:=1",
                           "layerscale:init=0.1 "})
    CHECK_REFUSED(nn::MethodChoice(text),
                  "[gate] expected NAME:CONSTANT=VALUE, where VALUE is a number or by_depth, got ");
  CHECK_REFUSED(nn::MethodChoice("layerscale:init=1:init=2"), "expected each constant once, got init twice");
  CHECK_REFUSED(nn::MethodChoice("mix_ln:post_share=by_depth"),
                "[mix_ln] expected post_share to be a number in [0, 1], got by_depth");
  CHECK_REFUSED(nn::MethodChoice("hyper_connections:streams=2.5"), "an integer in [1, 1024], got 2.5");
  CHECK_REFUSED(nn::MethodChoice("fixup:shifts=2"), "an integer in [0, 1], got 2");
  nn::Method none = method<Plain>(), twice = none, outside = none, chosen = nn::methods::layerscale(0.5);
  none.constants = {{.name = "a b"}};
  twice.constants = {{.name = "a"}, {.name = "a"}};
  outside.constants = {{.name = "a", .standard = 2, .most = 1}};
  CHECK_REFUSED(nn::register_method("mine", none),
                "constants of \"mine\" with names of letters, digits and underscores, got \"a b\"");
  CHECK_REFUSED(nn::register_method("mine", twice), "each constant of \"mine\" once, got \"a\" twice");
  CHECK_REFUSED(nn::register_method("mine", outside), "[mine] expected a to be a number of at most 1, got 2");
  CHECK_REFUSED(nn::register_method("mine", chosen), "expected the constants of \"mine\" at their standard values");
  struct Asks : Plain {
    explicit Asks(const nn::GateContext& c) { c.constant("T"); }
  };
  CHECK_REFUSED(stack_of(method<Asks>()), "expected a constant that the method declares, got \"T\"");
  nn::Method empty = method<Asks>();
  empty.constants = {{.name = "T"}};
  CHECK_REFUSED(stack_of(empty), "expected a value of the constant \"T\", got none");
}
TEST_CASE("misuse: a gate of zeros with a last layer of zeros") {
  struct Dead : nn::AlphaGate {
    Dead() : AlphaGate(0) {}
    void init_branch(nn::Branch& branch) override { branch.last().scale_init(0); }
  };
  CHECK_REFUSED(stack_of(method<Dead>()), "neither would ever get a gradient. Start the gate at another value");
  CHECK_REFUSED(stack_of(method<Dead>()), "(Block.attn.proj)");
}
TEST_CASE("misuse: stacks with sizes that do not fit") {
  CHECK_REFUSED(nn::Stack({.dim = 8, .depth = 1, .junctions = nn::transformer_block({.heads = 3}, {.hidden = 32})}),
                "a width that is a multiple of the heads, got dim 8 and 3 heads");
  CHECK_REFUSED(nn::Stack({.dim = 8, .depth = 1, .junctions = nn::transformer_block({.heads = 0}, {.hidden = 32})}),
                "got dim 8 and 0 heads");
  CHECK_REFUSED(nn::Stack({.dim = 8, .depth = 0, .junctions = nn::transformer_block({.heads = 2}, {.hidden = 32})}),
                "expected a depth of at least 1, got 0");
  CHECK_REFUSED(nn::ViT({.image = 32, .patch = 5}), "5");
}
TEST_CASE("misuse: weights of another method or another width or none") {
  const test::TemporaryFolder folder;
  const nn::ViTOptions tiny{
      .image = 8, .patch = 4, .channels = 1, .classes = 3, .dim = 8, .depth = 1, .heads = 2, .method = "layerscale"};
  nn::ViTOptions other = tiny, wide = tiny;
  other.method = "rezero";
  wide.dim = 16;
  const nn::ViT model(tiny);
  nn::save_weights(model, folder / "w.safetensors");
  nn::ViT rezero(other), wider(wide);
  CHECK_REFUSED(nn::load_weights(rezero, folder / "w.safetensors"), "blocks.0.gate.alpha");
  CHECK_REFUSED(nn::load_weights(wider, folder / "w.safetensors"), "[8]");
  CHECK_REFUSED(nn::load_weights(wider, folder / "none.safetensors"), "none.safetensors");
  CHECK_REFUSED(nn::load_weights(wider, folder.path()), folder.path().string());
}
