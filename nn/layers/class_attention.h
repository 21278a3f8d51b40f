// Class attention (Touvron et al. 2021, CaiT, section 3): a class token that reads the patches, which stay as they are.
#pragma once

#include "nn/gates/layerscale.h"
#include "nn/layers/attention.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// u [B, 1 + T, D], the class token first -> [B, 1, D]: one query a head, from the class token; keys and values from all of u, so that the
// class token attends to itself, too. Linears q, k, v, proj [D, D], all with bias. The cost is linear in T.
class ClassAttention : public Layer {
 public:
  explicit ClassAttention(const AttentionOptions& options);

 protected:
  Tensor forward(const Tensor& u) const override;

 private:
  AttentionOptions options_;
  Linear q_, k_, v_, proj_;
};

struct ClassBlockOptions {
  std::int64_t dim, heads, hidden;
  double init = 1e-5;  // of both gammas
  double norm_eps = 1e-6;
};

// Patches x [B, T, D] and class token c [B, 1, D] -> c [B, 1, D]:
//   c <- c + gamma1 * ClassAttention(LN1([c; x]));  c <- c + gamma2 * MLP(LN2(c))
// Nothing is dropped here, as in the authors' model. Parameters norm1, attn, norm2, mlp, gate1.gamma, gate2.gamma.
class LayerScaleBlockClassAttn : public Module {
 public:
  explicit LayerScaleBlockClassAttn(const ClassBlockOptions& options);
  Tensor operator()(const Tensor& patches, const Tensor& cls) const;

 private:
  LayerNorm norm1_, norm2_;
  ClassAttention attn_;
  Mlp mlp_;
  LayerScale gate1_, gate2_;
};

}  // namespace plumb::nn
