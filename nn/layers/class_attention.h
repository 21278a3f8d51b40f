// Class attention (Touvron et al. 2021, CaiT, section 3): a class token reads the patches, which do not change.
#pragma once

#include <functional>

#include "nn/gates/layerscale.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Maps u [B, 1 + T, D], with the class token first, to [B, 1, D]. Each head has one query, from the class token. Keys
// and values come from all tokens of u, so the class token also attends to itself. The linear layers q, k, v and proj
// have weights [D, D]; proj has a bias, and q, k and v have biases unless qkv_bias is false. The cost is linear in T.
// Throws Error for an input of another shape.
class ClassAttention : public Layer {
 public:
  explicit ClassAttention(const AttentionOptions& options);
  // Returns the attention probabilities for u, [B, heads, 1, 1 + T], without drops (DropKey, dropout).
  Tensor probabilities(const Tensor& u) const;

 protected:
  Tensor forward(const Tensor& u) const override;

 private:
  AttentionOptions options_;
  Linear q_, k_, v_, proj_;
  std::unique_ptr<Dropout> proj_drop_;  // null without dropout
};

// Makes a layer of type L from its options.
template <class L, class Options>
std::unique_ptr<Layer> make_layer(const Options& options) {
  return std::make_unique<L>(options);
}

// Options of a class attention block, including the options of timm's block (timm/models/cait.py). The defaults are
// those of the authors' model.
struct ClassBlockOptions {
  std::int64_t dim, heads, hidden;
  double init = 1e-5;  // initial value of both LayerScale gammas
  double norm_eps = 1e-6;
  Init weights = Init::truncated_normal(0.02);
  bool qkv_bias = true;
  // attn_drop: dropout of the attention probabilities. proj_drop: dropout after the last product of the attention, and
  // in the MLP after the activation and after fc2.
  double attn_drop = 0, proj_drop = 0;
  double drop_path = 0;  // rate of stochastic depth for both branches
  // The functions that make the parts of the block. `attention` makes a layer that maps [B, 1 + T, D] to [B, 1, D];
  // `mlp` makes a layer that maps [B, 1, D] to [B, 1, D]; `norm` makes the two norms.
  std::function<std::unique_ptr<Layer>(const AttentionOptions&)> attention =
      make_layer<ClassAttention, AttentionOptions>;
  std::function<std::unique_ptr<Layer>(const MlpOptions&)> mlp = make_layer<Mlp, MlpOptions>;
  std::function<std::unique_ptr<Layer>(std::int64_t dim, double eps)> norm = make_layer_norm;
};

// A class attention block: maps patches x [B, T, D] and the class token c [B, 1, D] to the new class token [B, 1, D].
//   c <- c + gamma1 * ClassAttention(LN1([c; x]));  c <- c + gamma2 * MLP(LN2(c))
// Stochastic depth applies to the two terms that are added to c. By default all drop rates are 0, as in the authors'
// model. Parameters: norm1, attn, norm2, mlp, gate1.gamma, gate2.gamma. Throws Error for inputs of other shapes.
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
