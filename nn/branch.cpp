#include "nn/branch.h"

#include "autograd/ops.h"
#include "core/scoped_value.h"

namespace plumb::nn {
namespace {

const BranchCall nowhere;

Tensor normed(const Layer* norm, const Tensor& x) { return norm ? (*norm)(x) : x; }

}  // namespace

Tensor Branch::operator()(const Tensor& x, const BranchCall& call) const {
  // The input and output of a module hook do not include the norm and the residual sum.
  const BranchCall alone{.hooks = call.hooks};
  const Tensor u = hooked() ? normed(call.norm, x) : x;
  const ScopedValue current(call_, hooked() ? &alone : &call);
  entered_ = left_ = false;
  const Tensor y = (*this)(u);
  check(entered_ && left_,
        "[branch] expected forward() of {} to begin with enter() and to end with leave(), which add norm and residual "
        "sum, "
        "got one without {}()",
        *path(), entered_ ? "leave" : "enter");
  return hooked() && call.add ? join(call, y) : y;
}

Tensor Branch::join(const BranchCall& call, const Tensor& f) const {
  if (call.value) *call.value = f.detach();
  const PathScope scope(call.add->path);
  return gated_residual(call.add->skip, f, call.add->gate, call.add->row_scale);
}

Tensor Branch::enter(const Linear& first, const Tensor& x, bool bf16_result) const {
  const BranchCall& call = call_ ? *call_ : nowhere;
  entered_ = true;
  if (!call.hooks) return first.after(call.norm, x, bf16_result);
  return call.hooks->projected(first(call.hooks->input(normed(call.norm, x))));
}

Tensor Branch::enter_gelu(const Linear& first, const Tensor& x, Gelu form) const {
  const BranchCall& call = call_ ? *call_ : nowhere;
  entered_ = true;
  return call.hooks ? gelu(enter(first, x), form) : first.gelu_after(call.norm, x, form, true);
}

Tensor Branch::leave(const Linear& last, const Tensor& h, const Layer* after) const {
  const BranchCall& call = call_ ? *call_ : nowhere;
  left_ = true;
  const Tensor hidden = call.hooks ? call.hooks->hidden(h) : h;
  if (after) {
    const Tensor f = (*after)(last(hidden));
    return call.add ? join(call, f) : f;
  }
  if (!call.add) return last(hidden);
  if (last.hooked()) return join(call, last(hidden));
  if (call.value) {
    const NoGrad no_grad;
    *call.value = last(hidden.detach());
  }
  return last.joined(call.add->skip, hidden, call.add->gate, call.add->row_scale);
}

}  // namespace plumb::nn
