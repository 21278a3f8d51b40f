// Products of matrices and vectors: y = op(a) op(b) over the last two axes, where op may transpose.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  detail::check_operands("matmul", a, b);
  check(a.shape().rank() >= 1 && b.shape().rank() >= 1, "[matmul] expected at least one axis each, got {} and {}",
        a.shape(), b.shape());
  if (a.shape().rank() == 1 || b.shape().rank() == 1) {
    check((a.shape().rank() > 1 || !transpose_a) && (b.shape().rank() > 1 || !transpose_b),
          "[matmul] expected at least two axes for a transposed operand, got {}{} and {}{}", a.shape(),
          transpose_a ? "^T" : "", b.shape(), transpose_b ? "^T" : "");
    check(a.dim(transpose_a ? -2 : -1) == b.dim(b.shape().rank() == 1 || transpose_b ? -1 : -2),
          "[matmul] expected equal inner extents, got {}{} and {}{}", a.shape(), transpose_a ? "^T" : "", b.shape(),
          transpose_b ? "^T" : "");
    const Tensor y = matmul(a.shape().rank() == 1 ? unsqueeze(a, 0) : a, b.shape().rank() == 1 ? unsqueeze(b, 1) : b,
                            transpose_a, transpose_b);
    return reshape(y, b.shape().rank() > 1   ? y.shape().without(-2)
                      : a.shape().rank() > 1 ? y.shape().without(-1)
                                             : Shape{});
  }
  const std::int64_t M = a.dim(transpose_a ? -1 : -2), K = a.dim(transpose_a ? -2 : -1),
                     N = b.dim(transpose_b ? -2 : -1);
  check(K == b.dim(transpose_b ? -1 : -2), "[matmul] expected equal inner extents, got {}{} and {}{}", a.shape(),
        transpose_a ? "^T" : "", b.shape(), transpose_b ? "^T" : "");
  const Shape batch = broadcast(a.shape().without(-1).without(-1), b.shape().without(-1).without(-1), "matmul");
  Array y = empty_like(a.array(), batch.appended(M, "matmul").appended(N, "matmul"));
  kernels(y).matmul(a.array(), transpose_a, b.array(), transpose_b, y);
  return record("matmul", y, {a, b}, [a = Saved(a), b = Saved(b), transpose_a, transpose_b](const Tensor& dy) {
    // dA = dy B^T and dB = A^T dy, each transposed if its operand was transposed.
    Tensor da, db;
    if (a.requires_grad()) da = transpose_a ? matmul(b, dy, transpose_b, true) : matmul(dy, b, false, !transpose_b);
    if (b.requires_grad()) db = transpose_b ? matmul(dy, a, true, transpose_a) : matmul(a, dy, !transpose_a, false);
    return Tensors{da, db};
  });
}

Tensor dot(const Tensor& a, const Tensor& b) {
  detail::check_operands("dot", a, b);
  check(a.shape().rank() == 1 && a.shape() == b.shape(), "[dot] expected two vectors of one length, got {} and {}",
        a.shape(), b.shape());
  return sum(a * b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  detail::check_operands("outer", a, b);
  check(a.shape().rank() == 1 && b.shape().rank() == 1, "[outer] expected two vectors, got {} and {}", a.shape(),
        b.shape());
  return unsqueeze(a, 1) * b;
}

}  // namespace plumb
