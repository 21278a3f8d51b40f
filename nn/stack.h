// N residual blocks under one method.
#pragma once

#include "nn/block.h"

namespace plumb::nn {

struct DropPathOptions {
  double rate = 0;
  Schedule schedule = Schedule::constant;  // uniform over blocks (CaiT), or increasing (DeiT's linear)
  DropPathForm form = DropPathForm::rescaled;
};

struct DropHeadOptions {
  double rate = 0;
  std::int64_t steps = 0;  // of training, over which the rate falls to 0 and rises again; 0: constant
};

struct StackOptions {
  std::int64_t dim, heads, hidden, depth;
  GateChoice gate = "layerscale";
  double norm_eps = 1e-6;
  std::optional<Recipe> recipe = {};  // base and scalar_rate count; recipe_of() if not given
  DropKey drop_key = {};
  KeyGrid grid = {};  // of the patches, the last tokens; asked for by DropKey's structured shapes
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  bool final_norm =
      false;  // a norm after the last block, as the method has it: most normalise x, ResiDual its second stream
  AttentionFactory attention = make_attention<Attention>;
};

// x [B, T, D] -> [B, T, D]; parameters blocks.N.*, and norm.* if it has a final norm. A model that adopts it under the
// name "" shows these as its own.
class Stack : public Layer {
 public:
  explicit Stack(const StackOptions& options);

  // The two halves of operator(), for a model that reads one token and closes that one alone. Hooks on the stack itself
  // belong to operator().
  Stream run(const Tensor& x) const;
  // run() in pieces, for a model that changes the tokens on the way: the stream that enters the first block, and blocks
  // first .. last - 1 of it.
  Stream open(const Tensor& x) const;
  void advance(Stream& stream, std::int64_t first, std::int64_t last) const;
  Tensor close(const Stream& stream) const;

  const Method& method() const { return *options_.gate; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  // Recompute each block in the backward pass instead of keeping its activations.
  void checkpoint_blocks(bool on) { checkpoint_blocks_ = on; }
  // DropKey, dropout and DropHead of the attention of every block, while training: on from the start. Off for a last
  // part of training without them (DropKey's fine-tuning, Li et al. 2023).
  void drop_in_attention(bool on);

 protected:
  Tensor forward(const Tensor& x) const override { return close(run(x)); }

 private:
  StackOptions options_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Layer> norm_;  // null without a final norm
  bool checkpoint_blocks_ = false;
};

}  // namespace plumb::nn
