// A branch with a second input, for tests of blocks such as those of a decoder.
#pragma once

#include <memory>

#include "autograd/ops.h"
#include "nn/layers/branch.h"
#include "nn/layers/heads.h"

namespace plumb::test {

// Attention of the stream to a memory: the call of the branch carries the memory.
class CrossAttention : public nn::Branch {
 public:
  CrossAttention(std::int64_t dim, std::int64_t heads)
      : Branch("CrossAttention"),
        heads_(heads),
        q_({.in = dim, .out = dim}),
        k_({.in = dim, .out = dim}),
        v_({.in = dim, .out = dim}),
        proj_({.in = dim, .out = dim}) {
    child("q", q_), child("k", k_), child("v", v_), child("proj", proj_);
  }
  nn::BranchShape shape() const override {
    return {.kind = "cross", .hidden = proj_.weight().dim(1), .heads = heads_, .weight_layers = 4};
  }
  std::vector<nn::WeightLayer*> weight_layers() override { return {&q_, &k_, &v_, &proj_}; }
  void scale_value_path(double factor) override { v_.scale_init(factor), proj_.scale_init(factor); }

 protected:
  nn::BranchResult forward(const nn::BranchCall& call) const override {
    const nn::Memory& m = call.memory();
    const Tensor keys = m.position.defined() ? m.x + m.position : m.x;
    return call.leave(
        proj_, nn::merge_heads(attention(nn::split_heads(call.enter(q_), heads_), nn::split_heads(k_(keys), heads_),
                                         nn::split_heads(v_(m.x), heads_))));
  }

 private:
  std::int64_t heads_;
  nn::Linear q_, k_, v_, proj_;
};

// Returns the choice of a CrossAttention for a junction, under the name "cross".
inline nn::BranchChoice cross_attention(std::int64_t heads) {
  return {"cross", [heads](const nn::BranchSite& site) { return std::make_unique<CrossAttention>(site.dim, heads); }};
}

}  // namespace plumb::test
