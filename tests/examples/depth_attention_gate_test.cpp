// The gate of examples/depth_attention_gate.cpp against the softmax that the gate computes in running form.
#include <plumb/vision.h>

#define main depth_attention_main  // the test uses the gate of the program, and not its main()
#include "examples/depth_attention_gate.cpp"
#undef main

#include <memory>

#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb::test;

namespace {

const Shape shape{2, 3, 4};

// The gates of the outputs with these logits, and the gate of the branch that reads all these outputs.
class Gates {
 public:
  explicit Gates(const std::vector<double>& logits) {
    const std::int64_t count = std::ssize(logits) + 1;
    for (std::int64_t i = 0; i < count; ++i)
      gates_.push_back(
          std::make_unique<DepthAttention>(nn::GateContext{{.dim = shape[-1], .block = i, .blocks = count}}));
    for (std::size_t i = 1; i < logits.size(); ++i) copy_into(full({1}, logits[i]).array(), gates_[i]->a.array());
  }

  // The logits that the gates learn: those of all outputs but the first.
  Tensors learned() const {
    Tensors a;
    for (std::size_t i = 1; i + 1 < gates_.size(); ++i) a.push_back(gates_[i]->a);
    return a;
  }
  // The input of the last branch, after the stream has passed the outputs f.
  Tensor read(const Tensors& f) const {
    nn::Stream stream = DepthAttention::open(ones(shape));
    for (std::size_t i = 0; i < f.size(); ++i) gates_[i]->join(stream, f[i], {}, nullptr);
    return gates_.back()->read(stream);
  }

 private:
  std::vector<std::unique_ptr<DepthAttention>> gates_;
};

Tensors outputs(std::size_t count) {
  Tensors f;
  for (std::size_t i = 0; i < count; ++i) f.push_back(variable(random_normal(shape, 0, fmt::format("output {}", i))));
  return f;
}

Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The mean u, and its gradients with respect to `variables` for a fixed cotangent.
Tensors mean_and_gradients(const Tensor& u, const Tensors& variables) {
  return joined({u}, grad(u, variables, {.cotangent = random_normal(shape, 1, "cotangent")}));
}

const std::vector<std::vector<double>> logits_of_outputs{
    {0, 0, 0, 0}, {0, 0.3, -1.2, 0.7}, {0, 200, -200, 200}, {0, -200, -200, -200}, {0, 200, 199, -200}, {0, -200, 200}};

}  // namespace

TEST_CASE("the running mean over earlier branches equals the plain softmax, also for logits of 200 and -200") {
  for (const std::vector<double>& logits : logits_of_outputs) {
    INFO(fmt::format("{}", fmt::join(logits, ", ")));
    const Tensors plain = [&] {
      const DefaultsScope f64(reference_f64);
      const Tensors f = outputs(logits.size());
      Tensors a;
      for (std::size_t i = 1; i < logits.size(); ++i) a.push_back(variable(full({1}, logits[i])));
      const Tensor shares = reshape(softmax(concat(joined({zeros({1})}, a), 0)), {-1, 1, 1, 1});
      return mean_and_gradients(sum(shares * stack(f, 0), 0), joined(a, f));
    }();
    for (const auto& [where, limit] : {std::pair(reference_f64, 1e-12), {cpu_f32, 1e-5}}) {
      const DefaultsScope scope(where);
      const Gates gates(logits);
      const Tensors f = outputs(logits.size());
      const Tensors running = mean_and_gradients(gates.read(f), joined(gates.learned(), f));
      REQUIRE(running.size() == plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i) CHECK(relative_error(running[i], plain[i]) < limit);
    }
  }
}

TEST_CASE("the running mean over earlier branches has the right first and second derivatives") {
  const DefaultsScope f64(reference_f64);
  for (const std::vector<double>& logits : logits_of_outputs) {
    INFO(fmt::format("{}", fmt::join(logits, ", ")));
    const Gates gates(logits);
    const Tensors f = outputs(logits.size());
    CHECK_NOTHROW(check_gradients([&] { return gates.read(f); }, joined(gates.learned(), f),
                                  {.order = 2, .tolerance = 1e-5, .elements = 2, .directions = 2}));
  }
}
