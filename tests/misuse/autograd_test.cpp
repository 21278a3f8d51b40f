// Mistakes with gradients: hooks, custom ops, cotangents, deleted graphs, and tensors that are changed in place.
#include <stdexcept>

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;
using namespace plumb::test;

namespace {

Tensor x_2_3() { return variable(tensor({1, 2, 3, 4, 5, 6}, {2, 3})); }

// A custom op whose backward function returns `gradients`.
Tensor own_op(const Tensor& x, const Tensors& gradients) {
  return record("own", (x * 2.0).array(), {x}, [gradients](const Tensor&) { return gradients; });
}

Tensor given_up() {
  const Tensor x = x_2_3();
  Tensor loss = sum(x * x);
  (void)backward(std::move(loss));
  return loss;
}

}  // namespace

TEST_CASE("misuse: a gradient hook that returns another shape") {
  const Tensor x = x_2_3();
  const Handle hook = x.on_gradient([](const Tensor& g) { return sum(g); });
  CHECK_REFUSED(backward(sum(x * x)), "[on_gradient] expected f32 [2, 3], got f32 []");
}

TEST_CASE("misuse: a gradient hook that returns another dtype") {
  const Tensor x = x_2_3();
  const Handle hook = x.on_gradient([](const Tensor& g) { return cast(g, DType::f64); });
  CHECK_REFUSED(grad(sum(x * x), x), "[on_gradient] expected f32 [2, 3], got f64 [2, 3]");
}

TEST_CASE("misuse: a gradient hook that returns a tensor on another device") {
  const Tensor x = x_2_3(), h = x * 2.0;
  const Handle hook = h.on_gradient([](const Tensor& g) { return zeros(g.shape(), reference); });
  CHECK_REFUSED(grad(sum(h), x), "[on_gradient] expected f32 [2, 3], got f32 [2, 3] on reference");
}

TEST_CASE("misuse: a gradient hook that changes a shared gradient in place") {
  const Tensor a = x_2_3(), b = x_2_3();
  const Handle hook =
      a.on_gradient([](const Tensor& g) { return copy_into(zeros_like(g).array(), g.array()), Tensor(); });
  CHECK_REFUSED(backward(sum(a + b)), "[on_gradient] expected the hook to leave the gradient f32 [2, 3] unchanged");
}

TEST_CASE("misuse: a hook without a function or on a constant") {
  CHECK_REFUSED(x_2_3().on_gradient({}), "[on_gradient] expected a function to call, got an empty one");
  CHECK_REFUSED(ones({2}).on_gradient([](const Tensor& g) { return g; }),
                "requires a gradient, got a constant f32 [2]");
}

TEST_CASE("misuse: a hook that throws leaves the engine unchanged") {
  const Tensor x = x_2_3();
  Handle hook = x.on_gradient([](const Tensor&) -> Tensor { throw Error("the hook's own"); });
  CHECK_REFUSED(backward(sum(x * x)), "the hook's own");
  hook.reset();
  CHECK(grad_enabled());
  CHECK(current_place().empty());
  CHECK(backward(sum(x * x)).find(x).values() == std::vector<double>{2, 4, 6, 8, 10, 12});
}

TEST_CASE("misuse: a custom op that returns too few or too many gradients") {
  const Tensor x = x_2_3();
  CHECK_REFUSED(backward(sum(own_op(x, {}))),
                "[own] expected 1 gradients from the backward function, one for each input of the op, got 0");
  CHECK_REFUSED(backward(sum(own_op(x, {ones({2, 3}), ones({2, 3})}))), "one for each input of the op, got 2");
}

TEST_CASE("misuse: a custom op whose gradient has another shape or dtype or device") {
  const Tensor x = x_2_3();
  CHECK_REFUSED(backward(sum(own_op(x, {ones({3, 2})}))),
                "[own] expected gradient 0 of the backward function to have the shape [2, 3] of its input");
  CHECK_REFUSED(backward(sum(own_op(x, {ones({3})}))), "got [3]");
  CHECK_REFUSED(backward(sum(own_op(x, {ones({2, 3}, f64)}))),
                "[own] expected gradient 0 of the backward function to be f32 on cpu like its input, got f64");
  CHECK_REFUSED(backward(sum(own_op(x, {ones({2, 3}, reference)}))), "got f32 on reference");
}

TEST_CASE("misuse: a custom op that records nothing or integers") {
  const Tensor x = x_2_3();
  const auto identity = [](const Tensor& dy) { return Tensors{dy}; };
  CHECK_REFUSED(record("own", Array(), {x}, identity),
                "[own] expected a floating result to record, got an undefined tensor");
  CHECK_REFUSED(record("own", integers({1}, {1}).array(), {x}, identity),
                "[own] expected a floating result to record, got i64 [1]");
}

TEST_CASE("misuse: a composed definition with another shape than its op is differentiated twice") {
  const Tensor x = x_2_3();
  const auto op = [](const Tensor& in) {
    return record_fused(
        "own", (in * 2.0).array(), {in}, [](const Tensor& dy) { return Tensors{dy * 2.0}; },
        through([](const Tensors& i) { return sum(i[0], {0}) * 2.0; }, {in}));
  };
  CHECK_REFUSED(
      grad(sum(op(x)), x, {.create_graph = true}),
      "[through] expected a composed definition whose result is f32 [2, 3], like the result of the op, got f32 [3]");
}

TEST_CASE("misuse: an array with the node of another tensor") {
  const Tensor x = x_2_3();
  const Tensor mixed(zeros({5}).array(), x.node());
  CHECK_REFUSED(
      mixed * 2.0,
      "[multiply] expected a tensor with the node that was made for it, got f32 [5] with the node of f32 [2, 3]");
}

TEST_CASE("misuse: backward of a non-scalar or a constant or integers") {
  const Tensor x = x_2_3();
  CHECK_REFUSED(backward(x * 2.0), "[backward] expected a scalar loss, got shape [2, 3]");
  CHECK_REFUSED(backward(sum(x.detach())), "[backward] expected a loss that depends on a variable, got a constant");
  CHECK_REFUSED(backward(integers({1}, {})), "[backward] expected a loss that depends on a variable, got a constant");
  // The message gives the reasons that apply, and no other reasons.
  const std::string constant = test::refusal([] { (void)backward(sum(ones({2, 3}))); });
  CHECK(constant ==
        "[backward] expected a loss that depends on a variable, got a constant: it was computed from no variable() and "
        "no parameter that is "
        "not frozen, or within NoGrad");
  const NoGrad no_grad;
  CHECK_REFUSED(backward(sum(x)), "got a constant: ops are not recorded while a NoGrad lives");
}

TEST_CASE("misuse: a loss is differentiated after its graph was given up") {
  const Tensor loss = given_up();
  CHECK_REFUSED(backward(loss), "[backward] " + got_undefined);
  CHECK_REFUSED(grad(loss, x_2_3()), "[grad] " + got_undefined);
  Tensor again = given_up();
  CHECK_REFUSED(backward(std::move(again)), "[backward] " + got_undefined);
}

TEST_CASE("misuse: a loss is read after its graph was given up") {
  const Tensor loss = given_up();
  CHECK_REFUSED(loss.values(), "[values] " + got_undefined);
  CHECK_REFUSED(loss.item(), "[item] " + got_undefined);
  CHECK_REFUSED(zeros_like(loss), "[zeros_like] " + got_undefined);
  CHECK_REFUSED(ones_like(loss), "[ones_like] " + got_undefined);
  CHECK_REFUSED(copy_into(loss.array(), zeros({}).array()), "[copy] " + got_undefined);
  CHECK_REFUSED(loss.array().data<float>(),
                "[array] expected an array to read with data<float>(), got an undefined one");
}

TEST_CASE("misuse: a part of a graph is differentiated after the graph was given up") {
  const Tensor x = x_2_3(), h = x * x;
  (void)backward(sum(h));
  CHECK_REFUSED(grad(sum(h), x), "got one that an earlier backward(std::move(loss)) has consumed");
}

TEST_CASE("misuse: the derivative of a gradient that was not recorded") {
  const Tensor x = x_2_3(), first = grad(sum(x * x * x), x);
  CHECK_REFUSED(grad(sum(first), x),
                "[grad] expected a y that depends on a variable, got f32 [], a constant: it was computed from no "
                "variable() and no parameter that is "
                "not frozen, or within NoGrad (if y is a result of grad(), set .create_graph = true there");
  CHECK_REFUSED(
      grad(sum(x), ones({2})),
      "[grad] expected tensors that require a gradient, got a constant f32 [2]: make a variable with variable(x)");
  CHECK(grad(sum(grad(sum(x * x * x), x, {.create_graph = true})), x).values()[1] == 12);
}

TEST_CASE("misuse: a gradient with respect to a constant") {
  const Tensor x = x_2_3();
  CHECK_REFUSED(grad(sum(x), x.detach()), "[grad] expected tensors that require a gradient, got a constant f32 [2, 3]");
  CHECK_REFUSED(grad(sum(x), Tensor()), "got a constant an undefined tensor");
}

TEST_CASE("misuse: a cotangent that is missing or has another shape or dtype or device") {
  const Tensor x = x_2_3(), y = x * 2.0;
  CHECK_REFUSED(grad(y, x), "[grad] expected a scalar or a cotangent of shape [2, 3], got neither");
  CHECK_REFUSED(grad(y, x, {.cotangent = ones({3, 2})}),
                "[grad] expected a cotangent f32 [2, 3] like y, got f32 [3, 2]");
  CHECK_REFUSED(grad(y, x, {.cotangent = ones({2, 3}, f64)}),
                "[grad] expected a cotangent f32 [2, 3] like y, got f64 [2, 3]");
  CHECK_REFUSED(grad(y, x, {.cotangent = ones({2, 3}, reference)}), "like y, got f32 [2, 3] on reference");
}

TEST_CASE("misuse: an operand changed in place between forward and backward") {
  const Tensor x = x_2_3(), w = x_2_3(), y = sum(x * w);
  copy_into(zeros({2, 3}).array(), w.array());
  CHECK_REFUSED(backward(y), "got one that was changed in place (by an optimizer step between forward and backward?)");
}

TEST_CASE("misuse: a result changed in place between forward and backward") {
  const Tensor x = x_2_3(), y = exp(x);
  copy_into(zeros({2, 3}).array(), y.array());
  CHECK_REFUSED(backward(sum(y)),
                "[exp] expected its result [2, 3] as it was in the forward pass, got one that was changed in place");
}

TEST_CASE("misuse: a mask or labels or an index changed in place between forward and backward") {
  const Tensor x = x_2_3();
  const Tensor mask(array_from(std::vector<std::uint8_t>{1, 0, 1}, {3}, Device::cpu)),
      rows = ones({2}), keep(mask.array().reshaped({1, 1, 1, 3}));
  const Tensor chosen = where(mask, x, x * 2.0),
               attended = attention(reshape(x, {2, 1, 1, 3}), ones({2, 1, 3, 3}), ones({2, 1, 3, 3}), {.keep = keep});
  const Tensor whole(array_from(std::vector<std::uint8_t>{1, 0, 1}, {1, 1, 1, 3}, Device::cpu)),
      q = variable(ones({1, 1, 1, 3}));
  const Tensor shared = attention(q, ones({1, 1, 3, 3}), ones({1, 1, 3, 3}), {.keep = whole});
  const Tensor nothing = ones({1, 1}), none = zeros({1});
  const Tensor talking =
      attention_talking(q, ones({1, 1, 3, 3}), ones({1, 1, 3, 3}), nothing, none, nothing, none, {.keep = whole});
  const Tensor scaled = gated_residual(x, x, {}, rows);
  mask.array().bump_version(), whole.array().bump_version(), rows.array().bump_version();
  for (const Tensor& y : {shared, talking}) CHECK_REFUSED(grad(sum(y), q, {.create_graph = true}), "changed in place");
  CHECK_REFUSED(backward(sum(chosen)), "changed in place");
  CHECK_REFUSED(backward(sum(attended)), "changed in place");
  CHECK_REFUSED(backward(sum(shared)), "changed in place");
  CHECK_REFUSED(backward(sum(talking)), "changed in place");
  CHECK_REFUSED(backward(sum(scaled)), "changed in place");

  const Tensor labels = integers({0, 2}, {2}), index = integers({1}, {1});
  const Tensor loss = cross_entropy(x, labels), row = gather(x, index);
  copy_into(integers({1, 1}, {2}).array(), labels.array()), copy_into(integers({0}, {1}).array(), index.array());
  CHECK_REFUSED(backward(loss), "changed in place");
  CHECK_REFUSED(backward(sum(row)), "changed in place");
}

TEST_CASE("misuse: the gradient of a function whose result is no floating scalar") {
  const Tensor x = ones({2, 3});
  CHECK_REFUSED(
      grad([](const Tensor& t) { return t * t; })(x),
      "[grad] expected a function that returns a floating scalar, got f32 [2, 3]: return its sum or its mean");
  CHECK_REFUSED(value_and_grad([](const Tensor& t) { return argmax(flatten(t, 0)); }, x),
                "floating scalar, got i64 []");
  CHECK_REFUSED(value_and_grad([](const Tensor&) { return Tensor(); }, x), "floating scalar, got an undefined tensor");
}

TEST_CASE("misuse: the gradient of a function with respect to labels or to nothing") {
  const auto loss = [](const Tensor& logits, const Tensor& labels) { return cross_entropy(logits, labels); };
  CHECK_REFUSED(grad(loss)(ones({2, 3}), integers({0, 1}, {2})),
                "[grad] expected f32 or f64 as argument 1 of the function, got i64 [2]: capture a tensor that is not "
                "differentiated");
  CHECK_REFUSED(grad(loss)(Tensor(), integers({0, 1}, {2})), "as argument 0 of the function, got an undefined tensor");
  CHECK_REFUSED(value_and_grad([](const Tensors&) { return ones({}); }, Tensors()),
                "[grad] expected at least one argument, got an empty list");
}

TEST_CASE("misuse: a function that throws leaves the engine unchanged") {
  const NoGrad no_grad;
  CHECK_REFUSED(grad([](const Tensor&) -> Tensor { throw Error("the function's own"); })(ones({})),
                "the function's own");
  CHECK_FALSE(grad_enabled());
}

TEST_CASE("misuse: checkpoint() without a function or with a function that returns nothing") {
  const Tensor x = x_2_3();
  CHECK_REFUSED(checkpoint({}, {x}), "[checkpoint] expected a function to run, got an empty one");
  CHECK_REFUSED(checkpoint([](const Tensors&) { return Tensor(); }, {x}),
                "[checkpoint] expected a function that returns a tensor, got an undefined one");
}

TEST_CASE("misuse: checkpoint() with a function that gives another result the second time") {
  const Tensor x = x_2_3();
  int calls = 0;
  const Tensor y = checkpoint([&calls](const Tensors& in) { return calls++ == 0 ? in[0] * 2.0 : sum(in[0]); }, {x});
  CHECK_REFUSED(backward(sum(y)),
                "[checkpoint] expected a function that computes f32 [2, 3] again, as in the forward pass, got f32 []");
}

TEST_CASE("misuse: a gradient under an unknown name") {
  const Tensor x = x_2_3();
  x.node()->name = "blocks.0.gamma";
  const Gradients g = backward(sum(x));
  CHECK_REFUSED(g["blocks.0.gama"], "got \"blocks.0.gama\"; did you mean \"blocks.0.gamma\"?");
  CHECK_REFUSED(g["head"], "got \"head\"");
}

TEST_CASE("misuse: a gradient of an intermediate result, or of a variable that was replaced") {
  Tensor x = x_2_3();
  const Tensor h = x * x;
  const Gradients g = backward(sum(h));
  CHECK_REFUSED(
      g.find(h),
      "[gradients] expected a variable of this graph, got f32 [2, 3], the result of multiply: for its gradient, "
      "use grad(loss, x)");
  x = variable(x.detach() * 2.0);
  CHECK_FALSE(g.find(x).defined());
  const char* const reason = "got an undefined tensor (from Gradients::find() of no variable of this graph, ";
  CHECK_REFUSED(g.find(x).values(), reason);
  CHECK_REFUSED(x - g.find(x), reason);
}

TEST_CASE("misuse: a gradient under a name that two variables have") {
  const Tensor a = x_2_3(), b = x_2_3();
  a.node()->name = b.node()->name = "w";
  const Gradients g = backward(sum(a * b));
  CHECK_REFUSED(g["w"], "[gradients] expected one parameter of this name, got several \"w\": use find(variable)");
  CHECK(g.find(b).values() == a.values());
}

TEST_CASE("misuse: gradients that the user assembled") {
  const Tensor x = x_2_3();
  x.node()->name = "w";
  CHECK_REFUSED(Gradients(zeros({}), {{x.node(), ones({3})}}),
                "[gradients] expected a gradient f32 [2, 3] on cpu like its variable w, got f32 [3]");
  CHECK_REFUSED(Gradients(zeros({}), {{x.node(), ones({2, 3}, f64)}}), "got f64 [2, 3]");
  CHECK_REFUSED(Gradients(zeros({}), {{x.node(), Tensor()}}), "got an undefined tensor");
  CHECK_REFUSED(Gradients(zeros({}), {{nullptr, ones({3})}}),
                "[gradients] expected the variable of each gradient, got none for f32 [3]");
}

TEST_CASE("misuse: elements read as another type") {
  CHECK_REFUSED(ones({2}).array().data<double>(),
                "[array] expected the elements of an f32 array to be read with data<float>(), got data<double>()");
  CHECK_REFUSED(Out(integers({1}, {1}).array()).mutable_data<float>(),
                "i64 array to be read with data<std::int64_t>(), got data<float>()");
}

TEST_CASE("misuse: a variable made of integers or of an undefined tensor") {
  CHECK_REFUSED(variable(integers({1}, {1})), "[variable] expected f32 or f64, got i64");
  CHECK_REFUSED(variable(Tensor()), "[variable] expected a value, got an undefined one");
}

TEST_CASE("misuse: random draws without an open RandomScope") {
  const Tensor x = ones({1, 1, 4, 2});
  CHECK_REFUSED(dropout(x, 0.5), "[dropout] expected an open RandomScope, got none");
  // The result of this op is the same in training mode and in evaluation mode.
  CHECK_REFUSED(dropout(x, 0.5), "or use nn::Dropout, which eval() on the model turns off");
  CHECK_REFUSED(attention(x, x, x, {.dropout = 0.1}), "[attention] expected an open RandomScope, got none");
  CHECK_REFUSED(attention(x, x, x, {.drop_key = 0.1}), "RandomScope scope({.seed = seed, .step = step})");
  CHECK_REFUSED(attention_qkv(ones({1, 4, 6}), 1, {.drop_key = 0.1, .drop_shape = DropShape::cross, .grid = {2, 2}}),
                "[attention_qkv] expected an open");
  const Tensor one = ones({1, 1}), zero = zeros({1});
  CHECK_REFUSED(attention_talking(x, x, x, one, zero, one, zero, {.drop_key = 0.1}),
                "[attention_talking] expected an open RandomScope");
  CHECK(dropout(x, 0).values() == x.values());
  const RandomScope random({.seed = 1, .step = 0});
  CHECK_NOTHROW(dropout(x, 0.5));
}

TEST_CASE("misuse: negative extents and values that do not fill their shape") {
  CHECK_REFUSED(zeros({2, -1}), "[shape] expected extents of at least 0, got -1 on axis 1");
  CHECK_REFUSED(random_normal({-3}, 0, "x"), "[shape] expected extents of at least 0, got -3 on axis 0");
  CHECK_REFUSED(reshape(ones({4}), {2, -2}), "[reshape] expected extents of at least 0, or one of -1, got [2, -2]");
  CHECK_REFUSED(tensor({1, 2, 3}, {2}), "[array] expected 2 values for shape [2], got 3");
  CHECK_REFUSED(integers({1}, {}) + 1.0, "[add] expected f32 or f64, got i64 []");
}
