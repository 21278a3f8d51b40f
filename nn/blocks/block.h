// The residual block: a list of junctions, such as attention and MLP in a transformer.
#pragma once

#include "nn/blocks/junction.h"
#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/layers/attention.h"
#include "nn/layers/mlp.h"

namespace plumb::nn {

// Options of stochastic depth in a stack.
struct DropPathOptions {
  double rate = 0;
  // Schedule::constant is that of CaiT, Schedule::increasing that of DeiT ("linear").
  Schedule schedule = Schedule::constant;
  DropPathForm form = DropPathForm::rescaled;
};

// Options of a Stack.
struct StackOptions {
  std::int64_t dim, depth;  // width of the stream, and number of blocks
  MethodChoice method = "layerscale";
  // The branches of the junctions of a block, in order: transformer_block({.heads = 2}, {.hidden = 256}), which is
  // {self_attention({.heads = 2}), mlp({.hidden = 256})}, or other lists.
  std::vector<BranchChoice> junctions;
  Layout layout = Layout::tokens;  // the axes of x: tokens [B, T, D] or images [B, D, H, W]
  double norm_eps = 1e-6;
  // The training recipe. A stack uses `base` and `scalar_rate` only. If the recipe is not given, recipe_of() chooses
  // the recipe.
  std::optional<Recipe> recipe = {};
  DropPathOptions drop_path = {};
  // Whether a norm follows the last block. The method decides the input of this final norm: for most methods the input
  // is x, for ResiDual the second stream.
  bool final_norm = false;
  // The name of the blocks in paths and in the names of parameters, blocks.N.*; not empty.
  std::string blocks = "blocks";
};

// Maps x [B, T, D] to [B, T, D]. The parameters are those of the junctions (norm1, attn, norm2, mlp in a transformer),
// and those of the method. If the initial values of a gate and of the last layer of its branch are both 0, the
// constructor throws Error, because gate and branch would never get a gradient.
class Block : public Layer {
 public:
  // Makes block `index` of a stack. Only a Stack has a `step` to make a block with.
  Block(const StackOptions& stack, std::int64_t index, const TrainingStep& step);

  // Advances the stream by this block. Stack calls advance() for each of its blocks. operator() computes the block
  // alone: it opens the stream, advances the stream and closes the stream, as the method prescribes. `inputs` are the
  // further inputs of the branches.
  void advance(Stream& stream, const StackInputs& inputs = {}) const;

  // Calls `observer` at each junction of each forward pass, as Junction::observe() does.
  using Observer = Junction::Observer;
  [[nodiscard("the observer is removed when its handle is destroyed: keep the handle")]] Handle observe(
      const Observer& observer);

  const std::vector<std::unique_ptr<Junction>>& junctions() const { return junctions_; }
  // Returns the branch with this name, such as "attn". Throws Error for another name.
  Branch& branch(const std::string& branch_name);
  Norm norm() const { return junctions_.front()->norm(); }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  MethodChoice method_;
  std::vector<ChildPtr<Module>> gates_;  // the gates and other modules of the method
  std::vector<std::unique_ptr<Junction>> junctions_;
};

}  // namespace plumb::nn
