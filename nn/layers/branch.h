// A residual branch: the part of a junction whose value is added to the stream. Attention and Mlp are branches.
#pragma once

#include <functional>
#include <memory>

#include "nn/layers/linear.h"
#include "nn/layers/stream.h"

namespace plumb {
struct LinearFusion;  // autograd/ops/linear_fusion.h
}

namespace plumb::nn {

struct BranchContext;  // nn/layers/branch_context.h

// The place of a junction in a stack. The branch and the gate of the junction are made for it.
struct JunctionPlace {
  std::int64_t dim = 0;  // width of the stream: the number of channels
  Layout layout = Layout::tokens;
  std::int64_t block = 0, blocks = 1;        // `block`: index of the block, from 0. `blocks`: number of blocks.
  std::int64_t junction = 0, junctions = 1;  // the same for the junction within its block
  Base weights = Base::truncated_normal;     // the distribution of the initial weights, as the recipe prescribes

  // Returns the index of the junction in the stack, from 0, and the number of junctions of the stack. A junction has
  // one branch, so the number is what papers call the number of branches (2N in a transformer encoder of N blocks).
  std::int64_t index() const { return block * junctions + junction; }
  std::int64_t count() const { return blocks * junctions; }
  // Returns the init of a weight that packs this number of matrices.
  Init init(int packed_parts = 1) const { return weight_init(weights, dim, packed_parts); }
};

// The second input of a branch that reads two inputs, such as cross-attention: the output of an encoder.
struct MemoryTokens {
  Tensor x = {};         // keys and values, [B, M, D]; undefined if there is no second input
  Tensor position = {};  // the positions that are added to the keys, [B, M, D] or [M, D]
  Tensor keep = {};      // the padding mask, u8 [B, M]; 1 means that the key is kept
};

// The inputs of a stack of blocks besides the stream. Each field is optional.
struct StackInputs {
  // The positions of the tokens, [B, T, D] or [T, D]. Attention adds them to its queries, and self-attention also to
  // its keys, but never to values (Carion et al. 2020, DETR).
  Tensor position = {};
  Tensor keep = {};  // the padding mask of the tokens, u8 [B, T]; 1 means that self-attention keeps the token as a key
  MemoryTokens memory = {};
};

// One call of a branch, on the stack of the caller. A branch gets its input from enter() and makes its result with
// leave(): these functions add the norm of the junction, the hooks of the gate and the residual sum.
class BranchCall {
 public:
  BranchCall(const BranchCall&) = delete;
  BranchCall& operator=(const BranchCall&) = delete;

  // Computes the norm and the first layer, and then GELU if `form` is given. If `first` is a Linear and the gate has no
  // hooks, one op computes all. With GELU, the result is then bf16 if products run in bf16 (PrecisionScope); leave(),
  // linear(), dropout() and cast() accept it.
  Tensor enter(const Layer& first, std::optional<Gelu> form = {}) const;
  // The same with any function as the first layer.
  Tensor enter(const std::function<Tensor(const Tensor& u)>& first) const;
  // Computes the last layer and the residual sum, in one op if `last` is a Linear. If `after` is given (dropout),
  // `after` is applied between the two.
  Tensor leave(const Layer& last, const Tensor& h, const Layer* after = nullptr);
  // Computes the residual sum for the value `f` of a branch whose last op is not a layer.
  Tensor leave(const Tensor& f);
  // Returns the inputs of the stack besides the stream; without any, all fields are empty.
  const StackInputs& inputs() const;
  // Returns the second input. Throws Error if the branch was called without one.
  const MemoryTokens& memory() const;

 private:
  friend class Branch;
  friend class Attention;
  BranchCall(const Tensor& x, const BranchContext& context) : x_(x), context_(context) {}
  // enter() with GELU and the dtype of the result as in `with`, if `first` is a Linear.
  Tensor enter_fused(const Layer& first, LinearFusion with) const;
  Tensor normed() const;                 // norm(x), with the hook on the input
  Tensor hidden(const Tensor& h) const;  // h, with the hook on the input of the last layer

  const Tensor& x_;
  const BranchContext& context_;
  Tensor left_;  // the result of leave()
};

// The shape of a branch, for residual methods whose parameters or initial weights depend on it. A branch states the
// fields that differ from the defaults.
struct BranchShape {
  std::string kind = {};    // "attn", "mlp", ..: the same for all branches of this type
  std::int64_t hidden = 0;  // width of the input of the last layer; 0 stands for the width that its weight has
  std::int64_t heads = 0;   // number of heads; 0 for a branch without heads
  // Number of weight matrices, as papers count: 4 in attention (q, k, v, out), 2 in an MLP. 0 stands for the number of
  // Branch::weight_layers().
  int weight_layers = 0;
  bool activation = false;  // whether an activation follows the first layer
  std::string name = {};    // the name of the branch in its block, such as "attn"; the block sets it
};

// Base class of the branches of a junction. A derived branch registers its layers in the order of the computation, and
// implements forward(BranchCall&). The default of `type_name` is the name of the class (Module).
class Branch : public Layer {
 public:
  explicit Branch(std::string type_name = "", BranchShape shape = {})
      : Layer(std::move(type_name)), shape_(std::move(shape)) {}
  // Return the shape for residual methods, without zeros for the width and the number of matrices, and its kind.
  BranchShape shape();
  const std::string& kind() const { return shape_.kind; }
  // Returns the layers with weights, in the order of the computation. Linear q, k and v in one product are one layer.
  // The default is every WeightLayer below the branch, in the order of registration. The default throws Error if there
  // is none.
  virtual std::vector<WeightLayer*> weight_layers();
  // Return the first and the last of these layers.
  WeightLayer& first() { return *weight_layers().front(); }
  WeightLayer& last() { return *weight_layers().back(); }
  // Multiplies the declared init of the weights on the path of the values by `factor`: W_v and W_o in attention, fc1
  // and fc2 in an MLP. The default scales all weight_layers(). A branch with heads must override this function, because
  // its W_q and W_k do not change: for such a branch, the default throws Error.
  virtual void scale_value_path(double factor);

  using Layer::operator();
  // Computes the branch without a norm and a residual sum, with further inputs: cross(x, {.memory = {.x = encoded}}).
  Tensor operator()(const Tensor& x, const StackInputs& inputs) const;

 protected:
  // Computes the branch. The input comes from call.enter(). The result must be the tensor that call.leave() returned;
  // for another tensor, which would lack the residual sum, the call of the branch throws Error.
  virtual Tensor forward(BranchCall& call) const = 0;

 private:
  friend Tensor call_branch(const Branch& branch, const Tensor& x, const BranchContext& context);
  Tensor forward(const Tensor& x) const final;
  Tensor run(const Tensor& x, const BranchContext& context) const;  // forward(), with the check of its result

  BranchShape shape_;
};

// A choice of branch for a junction: a name for the parameters, and a function that makes the branch.
struct BranchChoice {
  std::string name;
  std::function<std::unique_ptr<Branch>(const JunctionPlace&)> make;

  // Returns this choice under another name, for a block that has two branches of one kind.
  BranchChoice named(std::string other) const { return {std::move(other), make}; }
};

// Returns the choice of a branch of type B, which is constructed from the place of its junction and `arguments`:
//   nn::branch<CrossAttention>("cross")
template <class B, class... Arguments>
BranchChoice branch(std::string name, Arguments... arguments) {
  static_assert(std::is_base_of_v<Branch, B>, "[branch] the branch type must derive from nn::Branch");
  static_assert(std::is_constructible_v<B, const JunctionPlace&, const Arguments&...>,
                "[branch] the branch type must have a public constructor that takes a const nn::JunctionPlace& and "
                "these arguments");
  return {std::move(name), [arguments...](const JunctionPlace& place) -> std::unique_ptr<Branch> {
            return std::make_unique<B>(place, arguments...);
          }};
}

// The points inside a branch where a residual method can change the computation (Gate::inside()). A branch without
// hooks uses its fused path.
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

}  // namespace plumb::nn
