// What methods with norms inside or behind their branches share.
#pragma once

#include "nn/gates/gate.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// A norm before the last linear of a branch.
struct InnerNorm : Inside {
  explicit InnerNorm(const Layer& n) : norm(n) {}
  Tensor hidden(const Tensor& h) const override { return norm(h); }
  const Layer& norm;
};

// x + norm(f)
class NormAfter : public AfterGate {
 public:
  explicit NormAfter(const Layer& norm) : norm_(norm) {}
  Tensor after(const Tensor& branch) const override { return norm_(branch); }

 private:
  const Layer& norm_;
};

}  // namespace plumb::nn
