#include "nn/layers/norm.h"

#include "autograd/ops.h"

namespace plumb::nn {

LayerNorm::LayerNorm(std::int64_t dim, double eps)
    : Layer("LayerNorm"),
      eps_((detail::check_eps("layer_norm", eps), eps)),
      weight_(parameter("weight", {dim}, Init::constant(1), Role::norm)),
      bias_(parameter("bias", {dim}, Init::constant(0), Role::norm)) {}

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight_, bias_, eps_); }

RmsNorm::RmsNorm(std::int64_t dim, double eps)
    : Layer("RmsNorm"),
      eps_((detail::check_eps("rms_norm", eps), eps)),
      weight_(parameter("weight", {dim}, Init::constant(1), Role::norm)) {}

Tensor RmsNorm::forward(const Tensor& x) const { return rms_norm(x, weight_, eps_); }

DyT::DyT(std::int64_t dim, double alpha)
    : Layer("DyT"),
      alpha_(parameter("alpha", {1}, Init::constant(alpha), Role::norm)),
      weight_(parameter("weight", {dim}, Init::constant(1), Role::norm)),
      bias_(parameter("bias", {dim}, Init::constant(0), Role::norm)) {}

Tensor DyT::forward(const Tensor& x) const { return dyt(x, alpha_, weight_, bias_); }

}  // namespace plumb::nn
