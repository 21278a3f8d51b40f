// Class attention (Touvron et al. 2021, CaiT, section 3): a class token that reads the patches, which stay as they are.
#pragma once

#include <functional>

#include "nn/gates/layerscale.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// u [B, 1 + T, D], the class token first -> [B, 1, D]: one query a head, from the class token; keys and values from all
// of u, so that the class token attends to itself, too. Linears q, k, v, proj [D, D], all with bias unless the options
// say otherwise. The cost is linear in T.
class ClassAttention : public Layer {
 public:
  explicit ClassAttention(const AttentionOptions& options);
  Tensor probabilities(const Tensor& u) const;  // of u, [B, heads, 1, 1 + T], with nothing dropped

 protected:
  Tensor forward(const Tensor& u) const override;

 private:
  AttentionOptions options_;
  Linear q_, k_, v_, proj_;
  std::unique_ptr<Dropout> proj_drop_;  // null without dropout
};

template <class L, class Options>
std::unique_ptr<Layer> make_layer(const Options& options) {
  return std::make_unique<L>(options);
}

// What timm's block takes, too (timm/models/cait.py); by default what the authors' model has.
struct ClassBlockOptions {
  std::int64_t dim, heads, hidden;
  double init = 1e-5;  // of both gammas
  double norm_eps = 1e-6;
  Init weights = Init::truncated_normal(0.02);
  bool qkv_bias = true;
  double attn_drop = 0,
         proj_drop =
             0;  // dropout of attention; after its last product, and in the MLP after the activation and after fc2
  double drop_path = 0;  // stochastic depth, of both branches
  // What the block is made of: attention maps [B, 1 + T, D] to [B, 1, D], the MLP [B, 1, D] to the same.
  std::function<std::unique_ptr<Layer>(const AttentionOptions&)> attention =
      make_layer<ClassAttention, AttentionOptions>;
  std::function<std::unique_ptr<Layer>(const MlpOptions&)> mlp = make_layer<Mlp, MlpOptions>;
  std::function<std::unique_ptr<Layer>(std::int64_t dim, double eps)> norm = make_layer_norm;
};

// Patches x [B, T, D] and class token c [B, 1, D] -> c [B, 1, D]:
//   c <- c + gamma1 * ClassAttention(LN1([c; x]));  c <- c + gamma2 * MLP(LN2(c))
// with stochastic depth around what each gate adds. Nothing is dropped by default, as in the authors' model. Parameters
// norm1, attn, norm2, mlp, gate1.gamma, gate2.gamma.
class LayerScaleBlockClassAttn : public Module {
 public:
  explicit LayerScaleBlockClassAttn(const ClassBlockOptions& options);
  Tensor operator()(const Tensor& patches, const Tensor& cls) const;

 private:
  std::unique_ptr<Layer> norm1_, attn_, norm2_, mlp_;
  LayerScale gate1_, gate2_;
  DropPath drop1_, drop2_;
};

}  // namespace plumb::nn
