// Linear layer y = x W^T + b, x [.., K], W [N, K], b [N], optionally fused with a layer norm before it, and with GELU
// or a residual sum after it. The backward pass keeps x (not its norm), two numbers of the norm for each row, and
// gelu'(u); it does not keep the output of the branch.
#include <algorithm>

#include "autograd/node.h"
#include "autograd/ops/linear_fusion.h"
#include "autograd/ops/second.h"
#include "core/backend.h"

namespace plumb {
namespace {

Tensor as_f32(const Tensor& x) { return x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }

void check_linear(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.defined() && x.dtype() == DType::bf16) {  // x is the bf16 result of an earlier op; weights stay f32
    detail::check_float(op, weight);
    check(weight.dtype() == DType::f32 && weight.device() == x.device(),
          "[{}] expected an f32 weight on {} for a bf16 input, got {} on {}", op, enum_name(x.device()),
          enum_name(weight.dtype()), enum_name(weight.device()));
  } else {
    detail::check_operands(op, x, weight);
  }
  check(weight.shape().rank() == 2 && x.shape().rank() >= 1 && x.dim(-1) == weight.dim(1),
        "[{}] expected input [.., {}] for weight {}, got {}", op, weight.shape().rank() == 2 ? weight.dim(1) : 0,
        weight.shape(), x.shape());
  if (bias.defined()) {
    detail::check_operands(op, weight, bias);
    check(bias.shape() == Shape{weight.dim(0)}, "[{}] expected bias [{}] for weight {}, got {}", op, weight.dim(0),
          weight.shape(), bias.shape());
  }
}

void check_fusion(const char* op, const Tensor& x, const Tensor& weight, const LinearFusion& fusion) {
  check(!fusion.gelu || !fusion.sum, "[{}] expected GELU or a residual sum after the product, got both", op);
  if (const NormParameters& norm = fusion.norm; norm.weight.defined() || norm.bias.defined()) {
    detail::check_operands(op, x, norm.weight);
    detail::check_operands(op, x, norm.bias);
    check(norm.weight.shape() == Shape{x.dim(-1)} && norm.bias.shape() == norm.weight.shape(),
          "[{}] expected input [.., {}] for norm weight {} and bias {}, got {}", op, norm.weight.numel(),
          norm.weight.shape(), norm.bias.shape(), x.shape());
    detail::check_eps(op, norm.eps);
  }
  if (const auto& sum = fusion.sum) {
    check(fusion.result == ResultDType::weight,
          "[{}] expected ResultDType::weight with a residual sum, which is in the dtype of the stream, got "
          "ResultDType::product",
          op);
    detail::check_operands(op, sum->skip, weight);
    check(!sum->gate.defined() || sum->gate.shape().rank() == 1,
          "[{}] expected a gate [1] or [{}] in the residual sum, got {}", op, weight.dim(0), sum->gate.shape());
    detail::check_junction(op, sum->skip, x.shape().with(-1, weight.dim(0), op), sum->gate, sum->row_scale);
  }
}

// The definition of linear().
Tensor composed(const Tensor& input, const Tensor& weight, const Tensor& bias, const LinearFusion& fusion) {
  const NormParameters& norm = fusion.norm;
  const auto& sum = fusion.sum;
  const Tensor x = as_f32(input),
               u = linear_composed(norm.weight.defined() ? layer_norm_composed(x, norm.weight, norm.bias, norm.eps) : x,
                                   weight, bias);
  const Tensor y = fusion.gelu ? gelu(u, *fusion.gelu)
                   : sum       ? gated_residual_composed(sum->skip, u, sum->gate, sum->row_scale)
                               : u;
  return fusion.result == ResultDType::product ? cast(y, DType::bf16) : y;
}

// The operands of a backward pass.
struct Kept {
  LinearCall call;
  LinearKept rows;
  Saved x, weight, bias, gamma, beta, gate, row_scale;
  double eps;
  std::optional<Gelu> gelu;
  ResultDType result;
  bool summed;  // whether a residual sum follows the product
};

// The backward pass in f32 and f64, written in ops that are recorded. With h = norm(x), u = h W^T + b and du the
// gradient of u: dh = du W, dW = du^T h, db = sum du. The output of the branch is not needed. With s the row scale and
// G = (s dy)^T h: dgate_j = <W_j, G_j> + b_j sum (s dy)_j, and dW = gate G.
Tensors recorded_backward(const Kept& kept, const Tensor& dy) {
  const PrecisionScope exact(Precision::f32);
  const Tensor &x = kept.x, &weight = kept.weight, &bias = kept.bias, &gate = kept.gate, &row_scale = kept.row_scale;
  const bool normed = kept.gamma.get().defined(), gated = gate.defined() && gate.requires_grad();
  const Tensor h = normed ? layer_norm(x, kept.gamma, kept.beta, kept.eps) : x;
  Tensor scaled = dy;  // dy multiplied by the row scale, or by the slope of GELU
  if (kept.gelu) scaled = detail::gelu_backward(*kept.gelu, dy, linear(h, weight, bias));
  if (row_scale.defined()) {
    Shape by_sample = row_scale.shape();
    while (by_sample.rank() < dy.shape().rank()) by_sample = by_sample.appended(1);
    scaled = dy * reshape(row_scale, by_sample);
  }
  const Tensor du = detail::as_matrix(gate.defined() ? scaled * gate : scaled);
  Tensor dx, dweight, dbias, dgamma, dbeta, dgate;
  if (bias.defined() && bias.requires_grad()) dbias = sum(du, 0);
  if (gated) {
    const Tensor product = matmul(detail::as_matrix(scaled), detail::as_matrix(h), true);
    dweight = product * (gate.numel() == 1 ? gate : unsqueeze(gate, -1));
    dgate = sum(weight * product, -1);
    if (bias.defined()) dgate = dgate + bias * sum(detail::as_matrix(scaled), 0);
    if (gate.numel() == 1) dgate = sum(dgate, {}, true);
  } else if (weight.requires_grad()) {
    dweight = matmul(du, detail::as_matrix(h), true);
  }
  if (h.requires_grad()) {
    const Tensor dh = reshape(matmul(du, weight), x.shape());
    if (normed) {
      const detail::LayerNormGradients g =
          detail::layer_norm_backward(dh, x, kept.gamma, kept.rows.mean, kept.rows.rstd, kept.eps);
      dx = g.dx, dgamma = g.dweight, dbeta = g.dbias;
    } else {
      dx = dh;
    }
  }
  return {dx, dweight, dbias, dgamma, dbeta, kept.summed ? dy : Tensor(), dgate};
}

// The backward pass computed by the kernel, whose work is not recorded.
Tensors kernel_backward(const Kept& kept, const Tensor& dy) {
  for (const Saved* s : {&kept.gamma, &kept.beta, &kept.gate, &kept.row_scale})
    s->get();  // throws if the tensor was changed; the call reads the tensor's buffer
  const auto wanted = [](const Saved& t) { return t.requires_grad() ? empty_like(t.array()) : Array(); };
  LinearGradients g;
  if (kept.x.requires_grad()) {
    g.dx = detail::take_gradient(0);
    g.add_to_dx = g.dx.defined();
    if (!g.add_to_dx) g.dx = empty_like(kept.x.array());
  }
  g.dw = wanted(kept.weight), g.db = wanted(kept.bias), g.dgamma = wanted(kept.gamma), g.dbeta = wanted(kept.beta),
  g.dgate = wanted(kept.gate);
  kernels(dy.array())
      .linear_backward(kept.call, kept.rows, dy.array(), kept.x.array(), kept.weight.array(), kept.bias.array(), g);
  return Tensors{Tensor(g.dx),     Tensor(g.dw),    Tensor(g.db),
                 Tensor(g.dgamma), Tensor(g.dbeta), kept.summed ? dy : Tensor(),
                 Tensor(g.dgate)};
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearFusion& fusion) {
  constexpr const char* op = "linear";
  check_linear(op, x, weight, bias);
  check_fusion(op, x, weight, fusion);
  const NormParameters& norm = fusion.norm;
  const ResidualSum sum = fusion.sum.value_or(ResidualSum());
  const Tensors inputs{x, weight, bias, norm.weight, norm.bias, sum.skip, sum.gate};
  // Operands in f64 serve to check gradients, so they are never rounded to bf16.
  const bool bf16 = x.dtype() == DType::bf16 || (x.dtype() == DType::f32 && precision() == Precision::bf16);
  const ResultDType result = bf16 ? fusion.result : ResultDType::weight;
  Array y(x.shape().with(-1, weight.dim(0), op), result == ResultDType::product ? DType::bf16 : weight.dtype(),
          x.device());
  LinearCall call{.gamma = norm.weight.array(),
                  .beta = norm.bias.array(),
                  .eps = norm.eps,
                  .products = bf16 ? Precision::bf16 : Precision::f32};
  LinearKeptOut rows;
  if (norm.weight.defined()) {
    rows.mean = empty_like(x.array(), x.shape().with(-1, 1));
    rows.rstd = empty_like(rows.mean);
  }
  if (fusion.gelu) {
    call.after = LinearCall::After::gelu;
    call.gelu = *fusion.gelu;
    const bool recorded = grad_enabled() && std::ranges::any_of(inputs, &Tensor::requires_grad);
    if (recorded) rows.slope = empty_like(y);
  } else if (fusion.sum) {
    call.after = LinearCall::After::residual;
    call.skip = sum.skip.array();
    call.gate = sum.gate.array();
    call.row_scale = sum.row_scale.array();
  }
  kernels(y).linear_forward(call, x.array(), weight.array(), bias.array(), rows, y);
  call.skip = Array();  // not needed in the backward pass
  const auto kept = std::make_shared<const Kept>(Kept{.call = call,
                                                      .rows = {rows.mean, rows.rstd, rows.slope},
                                                      .x = Saved(x),
                                                      .weight = Saved(weight),
                                                      .bias = Saved(bias),
                                                      .gamma = Saved(norm.weight),
                                                      .beta = Saved(norm.bias),
                                                      .gate = Saved(sum.gate),
                                                      .row_scale = Saved(sum.row_scale),
                                                      .eps = norm.eps,
                                                      .gelu = fusion.gelu,
                                                      .result = result,
                                                      .summed = fusion.sum.has_value()});
  const auto backward = [kept](const Tensor& dy) { return kernel_backward(*kept, dy); };
  const auto differentiable = [kept](const Tensor& dy) {
    if (kept->call.products == Precision::f32) return recorded_backward(*kept, dy);
    // For products in bf16, these are the derivatives of the composed definition. The derivatives depend on dy and not
    // on the skip, so zeros replace the skip, which is not kept.
    const auto whole = [&](const Tensors& in) {
      LinearFusion with{.norm = {in[3], in[4], kept->eps}, .gelu = kept->gelu, .result = kept->result};
      if (kept->summed) with.sum = {zeros_like(dy), in[5], kept->row_scale};
      return composed(in[0], in[1], in[2], with);
    };
    Tensors gradients =
        through(whole, {kept->x, kept->weight, kept->bias, kept->gamma, kept->beta, kept->gate})(dy, Tensor());
    gradients.insert(gradients.begin() + 5, kept->summed ? dy : Tensor());
    return gradients;
  };
  return record_fused(op, y, inputs, backward, differentiable);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear(x, weight, bias, LinearFusion());
}

Tensor linear_composed(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = reshape(matmul(detail::as_matrix(x), weight, false, true), x.shape().with(-1, weight.dim(0)));
  return bias.defined() ? y + bias : y;
}

}  // namespace plumb
