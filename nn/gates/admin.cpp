// Admin (Liu et al. 2020): y = LN(omega * x + f(x)). The learned vector omega [D] multiplies the skip. All elements of
// one omega have the same initial value.
// `admin` uses the closed form of the authors' package admin-torch, for an output change of O(log n): omega = sqrt((R +
// 1) / ln(R + 1) - 1), with R = 2N branches.
// `admin_profile` makes the paper's pass over one batch, branch by branch: omega_1 = 1, omega_{i+1} = sqrt(Var(omega_i
// x_i) + Var(f_i(x_i))). The variances are over all elements; the authors' code uses the name std for these variances.
// The pass runs in evaluation mode, so dropout is off.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct AdminGate : SkipScaleGate {
  explicit AdminGate(const GateContext& c) : SkipScaleGate({}, c.layout) {
    scale_ = parameter("omega", {c.dim}, Init::constant(admin_omega(c.count())), Role::gate);
  }
};

double variance(const Tensor& x) {
  const double m = mean(x).item();
  return mean((x - m) * (x - m)).item();
}

struct ProfiledAdminGate : AdminGate {
  using AdminGate::AdminGate;
  void calibrate(const Tensor& skip, const Tensor& branch, std::optional<double>& carried) const override {
    const double omega = carried.value_or(1);
    set(scale_, full(scale_.shape(), omega, {scale_.dtype(), scale_.device()}));
    carried = std::sqrt(omega * omega * variance(skip) + variance(branch));
  }
};

Method method(const char* name, const char* formula, const char* use, const char* pitfalls) {
  return {
      .name = name,
      .norm = Norm::post,
      .paper =
          {.base = Base::xavier,
           .warmup = 5.0 / 300,
           .source =
               "Liu et al. 2020: Glorot uniform, warm-up in 8,000 steps of RAdam; the share of steps here is DeiT's"},
      .formula = formula,
      .source = "Liu et al. 2020, Understanding the difficulty of training transformers",
      .counts = "R = 2N branches",
      .use = use,
      .pitfalls = pitfalls,
      .build = {}};
}

}  // namespace

double admin_omega(std::int64_t branches) {
  const double n = static_cast<double>(branches) + 1;
  return std::sqrt(n / std::log(n) - 1);
}

Method methods::admin() {
  Method m = method("admin", "LN(w * x + f(x)), w [D] = sqrt((R+1)/ln(R+1) - 1)",
                    "Post-norm whose skip gets more weight with depth, for 2D parameters per block; the closed form "
                    "needs no data. The README of admin-torch, the authors' package, reports 27.84, 28.91 and 29.65 "
                    "BLEU at 6, 18 and 100 layers (WMT14, English to German).",
                    "R counts branches, not blocks. omega is a learned vector that multiplies the skip; weight decay "
                    "does not apply to omega.");
  m.build = gates_from<AdminGate>;
  return m;
}

Method methods::admin_profile() {
  Method m = method("admin_profile", "LN(w * x + f(x)), w [D] profiled on one batch",
                    "Admin as in its paper: one pass over a batch sets omega, branch by branch. The method costs 2D "
                    "parameters per block.",
                    "Before calibrate(), `admin_profile` equals `admin`. The profile depends on the seed and the data: "
                    "use the same seed and data for profile and training.");
  m.build = gates_from<ProfiledAdminGate>;
  return m;
}

}  // namespace plumb::nn
