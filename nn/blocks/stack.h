// A stack of residual blocks with one residual method.
#pragma once

#include "nn/blocks/block.h"

namespace plumb::nn {

// Returns the junctions of a transformer block: self-attention, then an MLP. The block sets dim and init of both.
std::vector<BranchChoice> transformer_block(const AttentionOptions& attention, const MlpOptions& hidden);

// Maps x [B, T, D] (or images [B, D, H, W]) to the same shape through `depth` blocks. The parameters are blocks.N.*,
// and norm.* if the stack has a final norm. If a model registers the stack under the name "", these parameters have the
// same names in the model.
class Stack : public Layer {
 public:
  using Options = StackOptions;  // the options of the constructor, for nn::Child
  explicit Stack(const StackOptions& options);

  using Layer::operator();
  // Computes the stack with further inputs of the branches: decoder(x, {.position = places, .memory = {.x = encoded}}).
  Tensor operator()(const Tensor& x, const StackInputs& inputs) const;
  // The parts of operator(), which is close(run(x, inputs)): run() returns the stream after the last block, and close()
  // returns the output [B, T, D] after the final norm. A model that reads only one token can call close() for this
  // token only. Only operator() calls the hooks on the stack itself.
  Stream run(const Tensor& x, const StackInputs& inputs = {}) const;
  // open() and advance() are the parts of run(), for a model that changes the tokens between two blocks. open() returns
  // the input stream of the first block; advance() runs the blocks first .. last - 1.
  Stream open(const Tensor& x) const;
  void advance(Stream& stream, std::int64_t first, std::int64_t last, const StackInputs& inputs = {}) const;
  Tensor close(const Stream& stream) const;

  // Return the residual method and the blocks.
  const Method& method() const { return *options_.method; }
  const Children<Block>& blocks() const { return blocks_; }
  // Returns the junctions of all blocks, in the order of the forward pass.
  std::vector<Junction*> junctions() const;
  // If `on` is true, each block is computed again in the backward pass, and the activations inside the block are not
  // kept.
  void checkpoint_blocks(bool on) { checkpoint_blocks_ = on; }
  // Switches DropKey, dropout and DropHead in the attention of every block on or off. These drops act in training only,
  // and are on in a new stack. DropKey's authors switch the drops off for the last part of training, the fine-tuning
  // (Li et al. 2023).
  void drop_in_attention(bool on);

 protected:
  Tensor forward(const Tensor& x) const override { return close(run(x)); }

 private:
  StackOptions options_;
  Children<Block> blocks_;
  ChildPtr<Layer> norm_embedding_, norm_;  // null without these norms
  bool checkpoint_blocks_ = false;
};

}  // namespace plumb::nn
