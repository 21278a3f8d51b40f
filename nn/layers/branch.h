// A residual branch: the part of a junction whose value is added to the stream. SelfAttention and Mlp are branches.
#pragma once

#include <functional>
#include <memory>

#include "nn/layers/linear.h"

namespace plumb::nn {

// The points inside a branch where a residual method can change the computation. A branch without hooks uses its fused
// path.
class BranchHooks {
 public:
  virtual ~BranchHooks() = default;
  // Changes the input of the first layer, after the norm: [B, T, D].
  virtual Tensor input(const Tensor& x) const { return x; }
  // Changes the output of the first layer: q, k and v packed as [B, T, 3D] in self-attention, q [B, T, D] in
  // cross-attention, the input of the activation [B, T, hidden] in an MLP.
  virtual Tensor projected(const Tensor& u) const { return u; }
  // Changes the input of the last layer: [B, T, D] in attention, [B, T, hidden] in an MLP.
  virtual Tensor hidden(const Tensor& h) const { return h; }
};

// The second input of a branch that reads two inputs, such as cross-attention: the output of an encoder.
struct MemoryTokens {
  Tensor x;              // keys and values, [B, M, D]
  Tensor position = {};  // the positions that are added to the keys, [B, M, D] or [M, D]
  Tensor keep = {};      // the padding mask, u8 [B, M]; 1 means that the key is kept
};

// The inputs of a stack of blocks besides the stream. Each field is optional.
struct StackInputs {
  // The positions of the tokens, [B, T, D] or [T, D]. Attention adds them to its queries, and self-attention also to
  // its keys, but never to values (Carion et al. 2020, DETR).
  Tensor position = {};
  Tensor keep = {};  // the padding mask of the tokens, u8 [B, T]; 1 means that self-attention keeps the token as a key
  std::optional<MemoryTokens> memory = {};
};

// The surroundings of a branch in one pass: the hooks inside the branch, the operations around the branch that the
// branch may fuse with its own, and the further inputs of the stack. Each field is optional.
struct BranchContext {
  const BranchHooks* hooks = nullptr;
  const Layer* norm = nullptr;          // the norm before the branch
  std::optional<ResidualSum> sum = {};  // the residual sum after the branch
  Path gate = {};                       // the module path of the gate, for messages about the sum
  const StackInputs* inputs = nullptr;
  Tensor* value = nullptr;  // receives the value of the branch, detached, for an observer; used only with `sum`
};

// The value that a branch returns. Only BranchCall::leave() makes one.
class BranchResult {
 public:
  // Returns the value, with the residual sum if the context has one.
  const Tensor& value() const { return value_; }

 private:
  friend class BranchCall;
  explicit BranchResult(Tensor value) : value_(std::move(value)) {}
  Tensor value_;
};

// One call of a branch, on the stack of the caller. A branch gets its input from enter() and makes its result with
// leave(): these functions add the norm, the hooks and the residual sum of the context.
class BranchCall {
 public:
  // The computation of enter() after the first layer, in the same op if the context has no hooks.
  struct First {
    std::optional<Gelu> gelu = {};
    // ResultDType::product if the next op of the branch accepts bf16.
    ResultDType result = ResultDType::weight;
  };

  BranchCall(const Tensor& x, const BranchContext& context) : x_(x), context_(context) {}
  BranchCall(const BranchCall&) = delete;
  BranchCall& operator=(const BranchCall&) = delete;

  // Computes the norm and the first layer, and the activation `with`.
  Tensor enter(const Linear& first, const First& with) const;
  Tensor enter(const Linear& first) const { return enter(first, First()); }
  // Computes the norm and a first layer of another type, or any function as the first layer.
  Tensor enter(const Layer& first) const;
  Tensor enter(const std::function<Tensor(const Tensor& u)>& first) const;
  // Computes the last layer and the residual sum. If `after` is given (dropout), `after` is applied between the two.
  BranchResult leave(const Linear& last, const Tensor& h, const Layer* after = nullptr) const;
  BranchResult leave(const Layer& last, const Tensor& h, const Layer* after = nullptr) const;
  // Computes the residual sum for the value `f` of a branch whose last op is not a layer.
  BranchResult leave(const Tensor& f) const;
  // Returns the inputs of the stack besides the stream; without any, all fields are empty.
  const StackInputs& inputs() const;
  // Returns the second input. Throws Error if the branch was called without one.
  const MemoryTokens& memory() const;

 private:
  Tensor normed() const;                 // norm(x), with the hook on the input
  Tensor hidden(const Tensor& h) const;  // h, with the hook on the input of the last layer

  const Tensor& x_;
  const BranchContext& context_;
};

// The shape of a branch, for residual methods whose parameters or initial weights depend on it.
struct BranchShape {
  std::string kind;         // "attn", "mlp", ..: the same for all branches of this type
  std::int64_t hidden = 0;  // width of the input of the last layer
  std::int64_t heads = 0;   // number of heads; 0 for a branch without heads
  int weight_layers = 2;    // number of weight matrices, as papers count: 4 in attention (q, k, v, out), 2 in an MLP
  bool activation = false;  // whether an activation follows the first layer
  std::string name = {};    // the name of the branch in its block, such as "attn"; the block sets it
};

// Base class of the branches of a junction. A derived branch implements forward(const BranchCall&).
class Branch : public Layer {
 public:
  using Layer::Layer;
  // Return the shape for residual methods, and its kind, such as "attn" or "mlp".
  virtual BranchShape shape() const = 0;
  std::string kind() const { return shape().kind; }
  // Returns the layers with weights, in the order of the computation. Linear q, k and v in one product are one layer.
  virtual std::vector<WeightLayer*> weight_layers() = 0;
  // Return the first and the last of these layers.
  WeightLayer& first() { return *weight_layers().front(); }
  WeightLayer& last() { return *weight_layers().back(); }
  // Multiplies the declared init of the weights on the path of the values by `factor`: W_v and W_o in attention, fc1
  // and fc2 in an MLP. W_q and W_k do not change.
  virtual void scale_value_path(double factor) = 0;

  using Layer::operator();
  // Computes the branch, with the norm and the residual sum of `context`. The input and the output of a module hook on
  // the branch do not include the norm and the residual sum.
  Tensor operator()(const Tensor& x, const BranchContext& context) const;

 protected:
  // Computes the branch. The input comes from call.enter(), and the result from call.leave().
  virtual BranchResult forward(const BranchCall& call) const = 0;

 private:
  Tensor forward(const Tensor& x) const final;
};

// The place in a stack for which a branch is made.
struct BranchSite {
  std::int64_t dim;            // width of the stream
  std::int64_t block, blocks;  // `block`: index of the block, from 0. `blocks`: number of blocks.
  Base weights;                // the distribution of the initial weights

  // Returns the init of a weight that packs this number of matrices.
  Init init(int packed_parts = 1) const { return weight_init(weights, dim, packed_parts); }
};
// A choice of branch for a junction: a name for the parameters, and a function that makes the branch.
struct BranchChoice {
  std::string name;
  std::function<std::unique_ptr<Branch>(const BranchSite&)> make;

  // Returns this choice under another name, for a block that has two branches of one kind.
  BranchChoice named(std::string other) const { return {std::move(other), make}; }
};

}  // namespace plumb::nn
