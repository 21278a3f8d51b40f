// Mistakes in branches of one's own that only a run shows.
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// A branch of two layers, whose forward() is `compute`.
struct Own : nn::Branch {
  using Compute = Tensor (*)(const Own&, nn::BranchCall&);
  Own(const nn::JunctionPlace& place, Compute f)
      : Branch("Own"), first(this, "first", {.in = place.dim, .out = 6}), compute(f) {}
  Tensor forward(nn::BranchCall& call) const override { return compute(*this, call); }
  nn::Child<nn::Linear> first, last{this, "last", {.in = 6, .out = 4}};
  Compute compute;
};

// Computes a block of one such branch.
Tensor block_of(Own::Compute compute) {
  nn::Stack stack({.dim = 4, .depth = 1, .method = "pre", .junctions = {nn::branch<Own>("own", compute)}});
  nn::initialize(stack, 1);
  return stack(ones({1, 2, 4}));
}

}  // namespace

TEST_CASE("a branch must return the tensor of leave()") {
  const std::string wanted =
                        "[branch] expected forward() to return the tensor of call.leave(), which adds the residual "
                        "sum, got ",
                    remedy = ": end forward() with return call.leave(..)";
  CHECK_NOTHROW(block_of([](const Own& b, nn::BranchCall& call) { return call.leave(b.last, call.enter(b.first)); }));
  CHECK_REFUSED(block_of([](const Own& b, nn::BranchCall& call) { return b.last(call.enter(b.first)); }),
                wanted + "a tensor without a call of leave()" + remedy);
  CHECK_REFUSED(
      block_of([](const Own& b, nn::BranchCall& call) { return 2 * call.leave(b.last, call.enter(b.first)); }),
      wanted + "another tensor" + remedy);
  CHECK_REFUSED(block_of([](const Own& b, nn::BranchCall& call) {
                  (void)call.leave(b.last, call.enter(b.first));
                  return Tensor();
                }),
                wanted + "an undefined tensor" + remedy);
  const NoGrad no_grad;  // tensors without nodes
  CHECK_NOTHROW(block_of([](const Own& b, nn::BranchCall& call) { return call.leave(b.last, call.enter(b.first)); }));
  CHECK_REFUSED(
      block_of([](const Own& b, nn::BranchCall& call) { return 2 * call.leave(b.last, call.enter(b.first)); }),
      wanted + "another tensor" + remedy);
}

TEST_CASE("a branch must register its layers, and with heads say which weights carry the values") {
  struct Unregistered : nn::Branch {
    explicit Unregistered(const nn::JunctionPlace&) : Branch("Unregistered") {}
    Tensor forward(nn::BranchCall& call) const override { return call.leave(layer, call.enter(layer)); }
    nn::Linear layer{{.in = 4, .out = 4}};
  };
  struct Heads : nn::Branch {
    explicit Heads(const nn::JunctionPlace&) : Branch("Heads", {.heads = 2}) {}
    Tensor forward(nn::BranchCall& call) const override { return call.leave(layer, call.enter(layer)); }
    nn::Child<nn::Linear> layer{this, "layer", {.in = 4, .out = 4}};
  };
  CHECK_REFUSED(
      nn::Stack({.dim = 4, .depth = 1, .junctions = {nn::branch<Unregistered>("own")}}),
      "[branch] expected a layer with a weight (Linear, Conv2d) among the children of Unregistered, got none");
  CHECK_NOTHROW(nn::Stack({.dim = 4, .depth = 1, .junctions = {nn::branch<Heads>("own")}}));
  CHECK_REFUSED(nn::Stack({.dim = 4, .depth = 1, .method = "deepnorm", .junctions = {nn::branch<Heads>("own")}}),
                "[branch] expected scale_value_path() of Block.own, a branch with heads, to be overridden, got");
}
