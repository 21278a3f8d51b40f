// Residual sum y = skip + s[sample] g f; the gate g is a scalar, per channel (of the last axis, or of an earlier one)
// or absent. The gradients: dskip = dy, df = s g dy, dg = sum of s dy f.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Reshapes row_scale [B] to [B, 1, .., 1] with this rank.
Tensor per_sample(const Tensor& row_scale, int rank) {
  Shape shape = row_scale.shape();
  while (shape.rank() < rank) shape = shape.appended(1);
  return reshape(row_scale, shape);
}

// Whether a gate [C, 1, ..] has one number per channel of a branch [.., C, ..].
bool of_channels(const Shape& gate, const Shape& branch) {
  if (gate.rank() < 1 || gate.rank() > branch.rank() || gate[0] != branch[-gate.rank()]) return false;
  for (int axis = 1; axis < gate.rank(); ++axis)
    if (gate[axis] != 1) return false;
  return true;
}

}  // namespace

void detail::check_junction(const char* op, const Tensor& skip, const Shape& branch, const Tensor& gate,
                            const Tensor& row_scale) {
  check(skip.shape() == branch, "[{}] expected skip and branch of one shape, got {} and {}", op, skip.shape(), branch);
  if (gate.defined()) {
    check_operands(op, skip, gate);
    check(gate.shape() == Shape{1} || of_channels(gate.shape(), branch),
          "[{}] expected a gate [1], [{}], or [channels, 1, 1] for channels before two axes, for branch {}, got {}", op,
          branch.rank() > 0 ? branch[-1] : 1, branch, gate.shape());
  }
  if (row_scale.defined()) {
    check_operands(op, skip, row_scale);
    check(branch.rank() > 1 && row_scale.shape() == Shape{branch[0]} && !row_scale.requires_grad(),
          "[{}] expected a constant row scale [B] for a branch [B, .., D], got {} for branch {}", op, row_scale.shape(),
          branch);
  }
}

Tensor gated_residual(const Tensor& skip, const Tensor& branch, const Tensor& gate, const Tensor& row_scale) {
  detail::check_operands("gated_residual", skip, branch);
  detail::check_junction("gated_residual", skip, branch.shape(), gate, row_scale);
  Array y = empty_like(skip.array());
  kernels(y).gated_residual_forward(skip.array(), branch.array(), gate.array(), row_scale.array(), y);
  return record_fused(
      "gated_residual", y, {skip, branch, gate},
      [branch = Saved(branch), gate = Saved(gate), row_scale = Saved(row_scale)](const Tensor& dy) {
        const bool gated = gate.get().requires_grad();
        if (!gate.get().defined() && !row_scale.get().defined()) return Tensors{dy, dy, Tensor()};
        Array df = empty_like(dy.array()), dg = gated ? empty_like(gate.array()) : Array();
        kernels(df).gated_residual_backward(dy.array(), branch.array(), gate.array(), row_scale.array(), df, dg);
        return Tensors{dy, Tensor(df), Tensor(dg)};
      },
      [branch = Saved(branch), gate = Saved(gate), row_scale = Saved(row_scale)](const Tensor& dy) {
        const Tensor scaled = row_scale.get().defined() ? dy * per_sample(row_scale, dy.shape().rank()) : dy;
        return gate.get().defined() ? Tensors{dy, scaled * gate, scaled * branch} : Tensors{dy, scaled, Tensor()};
      });
}

Tensor gated_residual_composed(const Tensor& skip, const Tensor& branch, const Tensor& gate, const Tensor& row_scale) {
  Tensor f = gate.defined() ? branch * gate : branch;
  if (row_scale.defined()) f = f * per_sample(row_scale, branch.shape().rank());
  return skip + f;
}

}  // namespace plumb
