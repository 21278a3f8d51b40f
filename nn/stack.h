// A stack of residual blocks under one method.
#pragma once

#include "nn/block.h"

namespace plumb::nn {

// Options of stochastic depth in a stack.
struct DropPathOptions {
  double rate = 0;
  Schedule schedule = Schedule::constant;  // constant over the blocks (CaiT), or increasing (DeiT's linear)
  DropPathForm form = DropPathForm::rescaled;
};

// Options of DropHead in a stack.
struct DropHeadOptions {
  double rate = 0;
  // The number of training steps over which the rate falls to 0 and rises again (drop_head_rate); 0: the rate is
  // constant.
  std::int64_t steps = 0;
};

// Options of a Stack.
struct StackOptions {
  std::int64_t dim, heads, hidden, depth;
  GateChoice gate = "layerscale";
  double norm_eps = 1e-6;
  // The training recipe, of which a stack uses base and scalar_rate. If not given, recipe_of() chooses it.
  std::optional<Recipe> recipe = {};
  DropKey drop_key = {};
  KeyGrid grid = {};  // the grid of the patches, which are the last tokens; needed by DropKey's structured shapes
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  // Whether a norm follows the last block. The method decides its input: most normalise x, ResiDual its second stream.
  bool final_norm = false;
  AttentionFactory attention = make_attention<Attention>;
};

// Maps x [B, T, D] to [B, T, D] through `depth` blocks. Parameters: blocks.N.*, and norm.* if there is a final norm. A
// model that registers the stack under the name "" shows these names as its own.
class Stack : public Layer {
 public:
  explicit Stack(const StackOptions& options);

  // run() and close() are the two halves of operator(): the stream after the last block, and the output [B, T, D] after
  // the final norm. A model that reads only one token can close only that one. Hooks on the stack itself are called by
  // operator() only.
  Stream run(const Tensor& x) const;
  // open() and advance() are the pieces of run(), for a model that changes the tokens on the way: the stream that
  // enters the first block, and its way through the blocks first .. last - 1.
  Stream open(const Tensor& x) const;
  void advance(Stream& stream, std::int64_t first, std::int64_t last) const;
  Tensor close(const Stream& stream) const;

  // The residual method and the blocks.
  const Method& method() const { return *options_.gate; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  // If on, each block is computed again in the backward pass, and its activations are not kept.
  void checkpoint_blocks(bool on) { checkpoint_blocks_ = on; }
  // Switches DropKey, dropout and DropHead in the attention of every block, which act in training only. They are on
  // from the start. DropKey's authors switch them off for a last part of training, the fine-tuning (Li et al. 2023).
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
