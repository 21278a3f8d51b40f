// Admin (Liu et al. 2020): y = LN(omega * x + f(x)), omega [D] learned, a constant a branch at the start, on the SKIP.
// `admin`: the closed form of the authors' admin-torch (output change O(log n)), omega = sqrt((R + 1) / ln(R + 1) - 1), R = 2N branches.
// `admin_profile`: the paper's pass over one batch, in order: omega_1 = 1, omega_{i+1} = sqrt(Var(omega_i x_i) + Var(f_i(x_i))), variances over
// all elements (the authors' code calls them std). It runs in evaluation mode: dropping is off.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class AdminGate : public Gate {
 public:
  explicit AdminGate(const GateContext& c) : omega_(parameter("omega", {c.dim}, Init::constant(admin_omega(c.blocks)), Role::gate)) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return gated_residual(branch, skip, omega_); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip * omega_, branch, {}, row_scale);
  }

 protected:
  Tensor omega_;
};

double variance(const Tensor& x) {
  const double m = mean(x).item();
  return mean((x - m) * (x - m)).item();
}

struct ProfiledAdminGate : AdminGate {
  using AdminGate::AdminGate;
  void calibrate(const Tensor& skip, const Tensor& branch, Calibration& pass) const override {
    const double omega = pass.carried.value_or(1);
    set(omega_, full(omega_.shape(), omega, {omega_.dtype(), omega_.device()}));
    pass.carried = std::sqrt(omega * omega * variance(skip) + variance(branch));
  }
};

Method method(const char* formula, const char* use) {
  return {
      .norm = Norm::post,
      .paper_base = Base::xavier,
      .formula = formula,
      .source = "Liu et al. 2020, Understanding the difficulty of training transformers",
      .counts = "R = 2N branches",
      .use = use,
      .pitfalls = "omega is a vector on the skip and learned: no decay. The profile depends on seed and data: use the same for profile and training.",
      .build = {}};
}

}  // namespace

double admin_omega(std::int64_t blocks) {
  const double n = 2 * static_cast<double>(blocks) + 1;
  return std::sqrt(n / std::log(n) - 1);
}

Method methods::admin() {
  Method m =
      method("LN(w * x + f(x)), w [D] = sqrt((R+1)/ln(R+1) - 1)", "Post-norm whose skip weighs more with depth; the closed form needs no data.");
  m.build = gate_per_branch<AdminGate>;
  return m;
}

Method methods::admin_profile() {
  Method m = method("LN(w * x + f(x)), w [D] profiled on one batch", "Admin as its paper has it: omega measured branch by branch.");
  m.build = gate_per_branch<ProfiledAdminGate>;
  return m;
}

}  // namespace plumb::nn
