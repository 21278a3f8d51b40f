// A residual junction: norm, branch, gate and stochastic depth. A block is a list of junctions.
#pragma once

#include <functional>
#include <memory>

#include "nn/gates/gate.h"
#include "nn/gates/method.h"
#include "nn/layers/branch.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/observers.h"
#include "nn/layers/stream.h"

namespace plumb::nn {

// One pass through a junction, for observers of signal propagation.
struct JunctionPass {
  JunctionPlace place;
  const std::string& branch_name;  // such as "attn"
  const Branch& branch;
  const Gate& gate;
  Norm norm;      // the place of the block's norm
  Stream before;  // the stream before the junction; before.x is the skip input
  Tensor joined;  // the result of the gate, before the norm if the norm is post
  // f: the value of the branch before the gate, without a graph. If the gate is fused with the last product of the
  // branch, this product is computed a second time for the observer.
  Tensor branch_value;
  Tensor output;  // the stream after the gate and, if the norm is post, after the norm
};

// Computes u = gate.read(stream), f = branch(u) and gate.join(stream, f), with the norm before the branch or after the
// sum. A junction is no module: norm, branch and stochastic depth are children of its block, so that the parameters
// belong to the block and keep their order.
class Junction {
 public:
  Junction(const Junction&) = delete;
  Junction& operator=(const Junction&) = delete;

  // Advances the stream by this junction. `inputs` are the further inputs of the branch.
  void advance(Stream& stream, const StackInputs& inputs) const;

  // Calls `observer` in each forward pass, as long as the handle lives. The observer is not called in passes of
  // calibrate() and in repeated passes of checkpoint(). Throws Error for an empty function.
  using Observer = std::function<void(const JunctionPass&)>;
  [[nodiscard("the observer is removed when its handle is destroyed: keep the handle")]] Handle observe(
      Observer observer);

  // The parts of the junction.
  Branch& branch() { return *parts_.branch; }
  const Branch& branch() const { return *parts_.branch; }
  const std::string& branch_name() const { return parts_.name; }
  const Gate& gate() const { return *parts_.gate; }
  Norm norm() const { return parts_.norm; }
  const Layer* norm_layer() const { return parts_.norm_layer.get(); }  // null if the block has no norms
  const JunctionPlace& place() const { return parts_.place; }

 private:
  friend class Block;
  // The parts, with the modules as children of the block.
  struct Parts {
    std::string name;  // the name of the branch, such as "attn"
    Gate* gate;        // owned by the block; several junctions of a block may share a gate
    Norm norm;         // the place of `norm_layer`
    JunctionPlace place;
    ChildPtr<Layer> norm_layer = {};  // null if the block has no norms
    ChildPtr<Branch> branch = {};
    ChildPtr<DropPath> drop_path = {};
  };
  explicit Junction(Parts parts);
  // Throws Error if neither the gate nor the branch could ever get a gradient, because both start at 0.
  void refuse_if_dead(const Method& method) const;

  Parts parts_;
  const DropPath& drop_path_;
  Observers<JunctionPass> observers_;
};

}  // namespace plumb::nn
