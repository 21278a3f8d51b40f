// Fixup (Zhang, Dauphin, Ma 2019), no norm; L = residual branches = 2 x blocks, m = weight layers in a branch:
//   (1) the last layer of each branch and the classifier start at 0; (2) the other weights are multiplied by L^(-1/(2m-2));
//   (3) a scalar shift (0) before every linear and activation, a scalar scale (1) at the end of the branch.
// Attention counts m = 4 (q, k, v, out): qkv x L^(-1/6). MLP m = 2: fc1 x L^(-1/2). Scalars learn at a tenth of the rate.
// The authors' transformer drops the biases of linears and subtracts its shifts; ours keeps the biases and adds. Their derivation of
// m = 2 assumes ReLU; we have GELU.
#include <cmath>

#include "nn/gates/gate.h"

namespace plumb::nn {
namespace {

constexpr double scalar_rate = 0.1;

struct Shifts : Module {
  Shifts() : Module("Shifts") {}
  Tensor attn = shift("attn"), fc1 = shift("fc1"), act = shift("act"), fc2 = shift("fc2");

 private:
  Tensor shift(const char* name) { return parameter(name, {1}, Init::constant(0), Role::shift, scalar_rate); }
};

struct InsideAttention : Inside {
  explicit InsideAttention(const Shifts& s) : shifts(s) {}
  Tensor input(const Tensor& x) const override { return x + shifts.attn; }
  const Shifts& shifts;
};

struct InsideMlp : Inside {
  explicit InsideMlp(const Shifts& s) : shifts(s) {}
  Tensor input(const Tensor& x) const override { return x + shifts.fc1; }
  Tensor activation(const Tensor& u) const override { return u + shifts.act; }
  Tensor hidden(const Tensor& h) const override { return h + shifts.fc2; }
  const Shifts& shifts;
};

class FixupGate : public ScaleGate {
 public:
  FixupGate(std::unique_ptr<Inside> inside, std::int64_t blocks, int weight_layers)
      : inside_(std::move(inside)), factor_(std::pow(2.0 * static_cast<double>(blocks), -1.0 / (2 * weight_layers - 2))) {
    scale_ = parameter("scale", {1}, Init::constant(1), Role::gate, scalar_rate);
  }
  void init_branch(Branch& branch) override {
    branch.first().weight_init() = branch.first().weight_init().scaled(factor_);
    branch.last().weight_init() = branch.last().weight_init().scaled(0);
  }
  const Inside* inside() const override { return inside_.get(); }

 private:
  std::unique_ptr<Inside> inside_;
  double factor_;
};

}  // namespace

Method fixup() {
  return {.norm = Norm::none,
          .claims = {Claim::identity_at_init, Claim::loss_is_log_classes},
          .zero_head = true,
          .paper_base = Base::xavier,
          .formula = "x + s f(x + b), s = 1, last layers and head 0",
          .source = "Zhang, Dauphin, Ma 2019, Fixup initialization",
          .build = [](const GateContext& c) {
            auto shifts = std::make_unique<Shifts>();
            auto attn = std::make_unique<FixupGate>(std::make_unique<InsideAttention>(*shifts), c.blocks, 4);
            auto mlp = std::make_unique<FixupGate>(std::make_unique<InsideMlp>(*shifts), c.blocks, 2);
            BlockGates gates{.modules = {}, .attn = attn.get(), .mlp = mlp.get()};
            gates.modules.emplace_back("gate1", std::move(attn));
            gates.modules.emplace_back("gate2", std::move(mlp));
            gates.modules.emplace_back("shifts", std::move(shifts));
            return gates;
          }};
}

}  // namespace plumb::nn
