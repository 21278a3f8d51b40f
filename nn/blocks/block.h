// The residual block: a list of junctions, such as attention and MLP in a transformer.
#pragma once

#include "nn/blocks/junction.h"
#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/layers/attention.h"
#include "nn/layers/mlp.h"

namespace plumb::nn {

// Options of a Block.
struct BlockOptions {
  std::int64_t dim;
  std::vector<BranchChoice> junctions;  // the branches of the junctions, in order: self_attention(..), mlp(..)
  MethodChoice method;                  // the residual method
  std::int64_t block, blocks;           // `block`: index of the block, from 0. `blocks`: number of blocks.
  Layout layout = Layout::tokens;
  double norm_eps = 1e-6;
  // The training recipe. A block uses `base` and `scalar_rate` only. If the recipe is not given, recipe_of() chooses
  // the recipe.
  std::optional<Recipe> recipe = {};
  double drop_path = 0;
  DropPathForm drop_path_form = DropPathForm::rescaled;
  // The training step of the stack. A block without a stack makes its own.
  std::shared_ptr<StepCounter> steps = {};
};

// Maps x [B, T, D] to [B, T, D]. The parameters are those of the junctions (norm1, attn, norm2, mlp in a transformer),
// and those of the method. If the initial values of a gate and of the last layer of its branch are both 0, the
// constructor throws Error, because gate and branch would never get a gradient.
class Block : public Layer {
 public:
  using Options = BlockOptions;  // the options of the constructor, for nn::Child
  explicit Block(const BlockOptions& options);

  // Advances the stream by this block. Stack calls advance() for each of its blocks. operator() is for a single block:
  // operator() opens the stream, advances the stream and closes the stream, as the method prescribes. `inputs` are the
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
