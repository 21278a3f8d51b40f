// The block of class attention (Touvron et al. 2021, CaiT, section 3).
#pragma once

#include "nn/gates/layerscale.h"
#include "nn/gates/method.h"
#include "nn/layers/class_attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

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
  // Functions that make the parts of the block; each must return a layer. `attention` makes a layer that maps
  // [B, 1 + T, D] to [B, 1, D]; `mlp` makes a layer that maps [B, 1, D] to [B, 1, D]; `norm` makes the two norms.
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
  using Options = ClassBlockOptions;  // the options of the constructor, for nn::Child
  explicit LayerScaleBlockClassAttn(const ClassBlockOptions& options);
  Tensor operator()(const Tensor& patches, const Tensor& cls) const;

 private:
  ChildPtr<Layer> norm1_, attn_, norm2_, mlp_;
  Child<LayerScale> gate1_, gate2_;
  Child<DropPath> drop1_, drop2_;
};

}  // namespace plumb::nn
