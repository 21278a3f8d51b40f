// y = op(a) op(b) over the last two axes.
#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  detail::check_operands("matmul", a, b);
  check(a.shape().rank() >= 2 && b.shape().rank() >= 2, "[matmul] expected at least two axes each, got {} and {}", a.shape(), b.shape());
  const std::int64_t M = a.dim(transpose_a ? -1 : -2), K = a.dim(transpose_a ? -2 : -1), N = b.dim(transpose_b ? -2 : -1);
  check(K == b.dim(transpose_b ? -1 : -2), "[matmul] expected equal inner extents, got {}{} and {}{}", a.shape(), transpose_a ? "^T" : "", b.shape(),
        transpose_b ? "^T" : "");
  const Shape batch = broadcast(a.shape().without(-1).without(-1), b.shape().without(-1).without(-1), "matmul");
  Array y = empty_like(a.array(), batch.appended(M).appended(N));
  kernels(y).matmul(a.array(), transpose_a, b.array(), transpose_b, y);
  return record("matmul", y, {a, b}, [a = Saved(a), b = Saved(b), transpose_a, transpose_b](const Tensor& dy) {
    // dA = dy B^T and dB = A^T dy, each transposed where its operand was.
    Tensor da, db;
    if (a.requires_grad()) da = transpose_a ? matmul(b, dy, transpose_b, true) : matmul(dy, b, false, !transpose_b);
    if (b.requires_grad()) db = transpose_b ? matmul(dy, a, true, transpose_a) : matmul(a, dy, !transpose_a, false);
    return Tensors{da, db};
  });
}

}  // namespace plumb
