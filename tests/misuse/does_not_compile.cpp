// Mistakes that the compiler refuses. Each line that ends in "refused: TEXT" must cause an error whose message contains
// TEXT. Without these lines the file must compile. does_not_compile.sh runs the check.
#include "autograd/enable_grad.h"
#include "core/profile.h"
#include "core/thread_share.h"
#include "plumb/plumb.h"

using namespace plumb;

struct Gate : nn::Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
};

struct Branch : nn::Branch {
  explicit Branch(const nn::JunctionPlace&) {}
  Tensor forward(nn::BranchCall& call) const override { return call.leave(layer, call.enter(layer)); }
  nn::Child<nn::Linear> layer{this, "layer", {.in = 8, .out = 8}};
};

void good(Tensor x, const Tensor& y, nn::Ema& ema, nn::Module& model) {
  x = y[0];
  x = where(y > 0, 1, 0);
  const NoGrad guard;
  const EnableGrad enabled;
  const AnomalyMode anomaly;
  const RandomScope random({.seed = 0});
  const PathScope path(nullptr);
  const PhaseScope phase("phase");
  const RepeatScope repeat(Repeat::observer);
  const DefaultsScope defaults({.dtype = DType::f64});
  const PrecisionScope precision(Precision::bf16);
  const ThreadShare share(1);
  const Profile profile;
  const nn::EmaScope averaged(ema);
  const nn::EvaluationScope evaluation(model);
  x = grad([](const Tensor& in) { return in * in; })(y);
  const auto [value, g] = value_and_grad([](const Tensors& in) { return in[0] * in[1]; }, {x, y});
  nn::register_method<Gate>("gate");
  nn::branch<Branch>("branch");
}

// clang-format off
// Each comment must stay on the line of its mistake.
#ifdef WITH_MISTAKES
struct ByValue : nn::Gate {
  Tensor combine(Tensor skip, Tensor branch) const { return skip + branch; }
};
struct NoGate {};
struct OfTwo : Gate {
  OfTwo(int, int) {}
};
struct WithoutEnter : Branch {
  using Branch::Branch;
  Tensor forward(nn::BranchCall& call) const override {
    return call.leave(layer, call.x_);  // refused: private within this context
  }
};

void mistakes(Tensor x, const Tensor& y, nn::Ema& ema, nn::Module& model, const nn::Optimizer& optimizer) {
  x[0] = y;                              // refused: operator=
  x + y = y;                             // refused: operator=
  NoGrad();                              // refused: name it: NoGrad guard;
  EnableGrad();                          // refused: name it: EnableGrad guard;
  AnomalyMode();                         // refused: name it: AnomalyMode guard;
  RandomScope({.seed = 0});              // refused: name it: RandomScope scope({.seed = 0});
  PathScope(nullptr);                    // refused: name it: PathScope scope(path);
  PhaseScope("phase");                   // refused: name it: PhaseScope scope(phase);
  RepeatScope(Repeat::observer);         // refused: name it: RepeatScope scope(why);
  DefaultsScope({.dtype = DType::f64});  // refused: name it: DefaultsScope scope({..});
  PrecisionScope(Precision::bf16);       // refused: name it: PrecisionScope scope(precision);
  ThreadShare(1);                        // refused: name it: ThreadShare share(threads);
  Profile();                             // refused: name it: Profile profile;
  nn::EmaScope{ema};                     // refused: name: EmaScope scope(ema);
  nn::EvaluationScope{model};            // refused: name: EvaluationScope scope(model);
  optimizer.state();                     // refused: discards qualifiers
  optimizer.check_finite();              // refused: discards qualifiers
  value_and_grad([](const Tensor& in) { return in; }, y);  // refused: only returns the results
  (void)value_and_grad([](const Tensor& in) { return in.item(); }, y);            // refused: and return a Tensor
  (void)value_and_grad([](const Tensor& in) { return in; }, y, y);                // refused: as many tensors as there are arguments
  (void)value_and_grad([](const Tensor& in) { return in; }, Tensors{y});          // refused: must take a list of tensors
  const Tensor first = grad([](const Tensor& a, const Tensor& b) { return a * b; })(y, y);  // refused: conversion from
  (void)grad(y);                         // refused: no matching function
  nn::register_method<ByValue>("by_value");   // refused: override Tensor combine(const Tensor& skip, const Tensor& branch) const
  nn::register_method<nn::Gate>("abstract");  // refused: override Tensor combine(const Tensor& skip, const Tensor& branch) const
  nn::branch<NoGate>("no_branch");       // refused: must derive from nn::Branch
  nn::branch<Branch>("of_two", 2);       // refused: a public constructor that takes a const nn::JunctionPlace& and these arguments
  nn::register_method<NoGate>("no_gate");  // refused: must derive from nn::Gate
  nn::register_method<OfTwo>("of_two");    // refused: a public constructor that takes a const nn::GateContext& or no arguments
}
#endif
