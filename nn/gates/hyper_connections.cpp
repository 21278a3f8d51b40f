// Hyper-connections, static form (Zhu et al. 2024). The stream has n copies H_i; x is repeated n times before the first
// block, and the copies are summed after the last block. Branch l reads sum_i a_i H_i; then
// H'_i = sum_j R_ji H_j + b_i f. The initial values are a = onehot(l mod n), R = I and b = 1. With these values the
// network equals pre-norm, because the sum is n x and the final norm removes n. The paper's dynamic form adds 0.01
// tanh(norm(H) W), with initial value W = 0, to each of a, R and b. The dynamic form is not implemented.
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

std::vector<double> one_hot(std::int64_t i, std::int64_t n) {
  std::vector<double> v(static_cast<std::size_t>(n), 0);
  v[static_cast<std::size_t>(i % n)] = 1;
  return v;
}

std::vector<double> identity(std::int64_t n) {
  std::vector<double> v;
  for (std::int64_t i = 0; i < n; ++i)
    for (double x : one_hot(i, n)) v.push_back(x);
  return v;
}

class HyperGate : public Gate {  // the stream is [B, T, n, D]
 public:
  HyperGate(std::int64_t streams, std::int64_t branch)
      : read_(parameter("read", {streams}, Init::values(one_hot(branch, streams)), Role::gate)),
        mix_(parameter("mix", {streams, streams}, Init::values(identity(streams)), Role::gate)),
        write_(parameter("write", {streams}, Init::constant(1), Role::gate)) {}

  Tensor read(const Stream& s) const override {
    const std::int64_t n = read_.numel();
    return reshape(matmul(reshape(read_, {1, n}), s.x), {s.x.dim(0), s.x.dim(1), s.x.dim(3)});
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return matmul(mix_, skip, true) + added(skip, branch);
  }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(matmul(mix_, skip, true), added(skip, branch), {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override {
    return reshape(branch, {branch.dim(0), branch.dim(1), 1, branch.dim(2)}) * reshape(write_, {write_.numel(), 1});
  }
  Tensor values(const Stream&) const override { return concat({read_, reshape(mix_, {mix_.numel()}), write_}, 0); }

 private:
  Tensor read_, mix_, write_;
};

}  // namespace

Method methods::hyper_connections(std::int64_t streams) {
  return Method{.name = "hyper_connections",
                .norm = Norm::pre,
                .formula = "H' = R^T H + b f(LN(a H)), 4 streams, R = I, b = 1",
                .source = "Zhu et al. 2024, Hyper-connections",
                .counts = "l: index of the branch",
                .use =
                    "Training can choose between sequential and parallel branches, because every branch learns how "
                    "it reads and writes n copies of the stream. The README of wdlctc/hyper-connection-factory "
                    "reports for the static form, as here, a validation loss below that of pre-norm: by 0.036 at "
                    "38.5M parameters and by 0.008 at 85M.",
                .pitfalls =
                    "The stream takes n times the memory. The final norm is necessary, because this norm removes the "
                    "factor n of the sum.",
                .constants = {{.name = "streams",
                               .standard = 4,
                               .least = 1,
                               .most = 1024,
                               .whole = true,
                               .affects = Affects::parameters,
                               .meaning = "n, the number of streams"}},
                .build =
                    [](const GateContext& c) {
                      c.require_tokens("hyper_connections");
                      const auto n = static_cast<std::int64_t>(c.constant("streams"));
                      return gate_per_junction(
                          c, [n](const GateContext& at) { return std::make_unique<HyperGate>(n, at.index()); });
                    },
                .close =
                    [](const Stream& s, const Layer* norm) {
                      const Tensor x = sum(s.x, {2});
                      return norm ? (*norm)(x) : x;
                    },
                .follow =
                    [](Method& m) {
                      m.open = [streams = static_cast<std::int64_t>(*m.value("streams"))](const Tensor& x) {
                        const Shape wide{x.dim(0), x.dim(1), streams, x.dim(2)};
                        return Stream{broadcast_to(reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2)}), wide)};
                      };
                    }}
      .with({{"streams", static_cast<double>(streams)}});
}

}  // namespace plumb::nn
