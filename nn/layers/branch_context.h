// The call of a branch by a junction.
#pragma once

#include <optional>

#include "autograd/ops/linear_fusion.h"
#include "nn/module.h"

namespace plumb::nn {

class Branch;
class BranchHooks;
struct StackInputs;

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

// Computes the branch, with the norm and the residual sum of `context`. The input and the output of a module hook on
// the branch do not include the norm and the residual sum.
Tensor call_branch(const Branch& branch, const Tensor& x, const BranchContext& context);

}  // namespace plumb::nn
