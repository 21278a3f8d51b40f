// y = x W^T + b, x [.., K], W [N, K], b [N]; and gelu of it.
#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {
namespace {

void check_linear(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  detail::check_operands(op, x, weight);
  check(weight.shape().rank() == 2 && x.shape().rank() >= 1 && x.dim(-1) == weight.dim(1), "[{}] expected input [.., {}] for weight {}, got {}", op,
        weight.shape().rank() == 2 ? weight.dim(1) : 0, weight.shape(), x.shape());
  if (bias.defined()) {
    detail::check_operands(op, x, bias);
    check(bias.shape() == Shape{weight.dim(0)}, "[{}] expected bias [{}] for weight {}, got {}", op, weight.dim(0), weight.shape(), bias.shape());
  }
}

Array product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Array y = empty_like(x.array(), x.shape().with(-1, weight.dim(0)));
  kernels(y).linear_forward(x.array(), weight.array(), bias.array(), y);
  return y;
}

// Gradients of x, weight and bias; those that nobody wants are not computed.
struct LinearBackward {
  Saved x, weight;
  bool want_x, want_weight, want_bias;

  LinearBackward(const Tensor& input, const Tensor& w, const Tensor& b)
      : x(input), weight(w), want_x(input.requires_grad()), want_weight(w.requires_grad()), want_bias(b.requires_grad()) {}

  Tensors operator()(const Array& dy) const {
    const Array dx = want_x ? empty_like(x.array()) : Array(), dw = want_weight ? empty_like(weight.array()) : Array(),
                db = want_bias ? empty_like(dy, {dy.dim(-1)}) : Array();
    kernels(dy).linear_backward(dy, x.array(), weight.array(), dx, dw, db);
    return {Tensor(dx), Tensor(dw), Tensor(db)};
  }
};

Tensor linear_of(const Tensors& in) { return linear_composed(in[0], in[1], in[2]); }

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_linear("linear", x, weight, bias);
  return record_fused(
      "linear", product(x, weight, bias), {x, weight, bias},
      [backward = LinearBackward(x, weight, bias)](const Tensor& dy) { return backward(dy.array()); }, through(linear_of, {x, weight, bias}));
}

Tensor linear_composed(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = reshape(matmul(reshape(x, {x.numel() / x.dim(-1), x.dim(-1)}), weight, false, true), x.shape().with(-1, weight.dim(0)));
  return bias.defined() ? y + bias : y;
}

// u = x W^T + b is replaced by gelu'(u) as soon as gelu(u) is known: the backward pass needs no more.
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu form) {
  check_linear("linear_gelu", x, weight, bias);
  const Array slope = product(x, weight, Tensor());
  const bool recorded = grad_enabled() && (x.requires_grad() || weight.requires_grad() || bias.requires_grad());
  Array y = empty_like(slope);
  kernels(y).gelu_forward(form, slope, bias.array(), y, recorded ? slope : Array());
  return record_fused(
      "linear_gelu", y, {x, weight, bias},
      [backward = LinearBackward(x, weight, bias), slope](const Tensor& dy) {
        const Array du = empty_like(slope);
        kernels(du).binary(Binary::multiply, dy.array(), slope, du);
        return backward(du);
      },
      through([form](const Tensors& in) { return gelu(linear_of(in), form); }, {x, weight, bias}));
}

}  // namespace plumb
