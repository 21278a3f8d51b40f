#include "nn/blocks/class_attention_block.h"

namespace plumb::nn {
namespace {

std::unique_ptr<Layer> made(std::unique_ptr<Layer> layer, const char* part) {
  check(layer != nullptr, "[class_block] expected ClassBlockOptions::{} to make a layer, got null", part);
  return layer;
}

}  // namespace

LayerScaleBlockClassAttn::LayerScaleBlockClassAttn(const ClassBlockOptions& o)
    : Module("LayerScaleBlockClassAttn"),
      norm1_(this, "norm1", made(o.norm(o.dim, o.norm_eps), "norm")),
      attn_(this, "attn",
            made(o.attention({.dim = o.dim,
                              .heads = o.heads,
                              .dropout = o.attn_drop,
                              .init = o.weights,
                              .qkv_bias = o.qkv_bias,
                              .proj_drop = o.proj_drop}),
                 "attention")),
      norm2_(this, "norm2", made(o.norm(o.dim, o.norm_eps), "norm")),
      mlp_(this, "mlp", made(o.mlp({.dim = o.dim, .hidden = o.hidden, .init = o.weights, .drop = o.proj_drop}), "mlp")),
      gate1_(this, "gate1", o.dim, o.init),
      gate2_(this, "gate2", o.dim, o.init),
      drop1_(this, "drop_path1", o.drop_path, 0),
      drop2_(this, "drop_path2", o.drop_path, 1) {}

Tensor LayerScaleBlockClassAttn::operator()(const Tensor& patches, const Tensor& cls) const {
  const PathScope scope(path());
  check(patches.shape().rank() == 3 && cls.shape() == patches.shape().with(1, 1),
        "[class_block] expected patches [B, T, D] and a class token [B, 1, D], got {} and {}", patches.shape(),
        cls.shape());
  const auto join = [](const LayerScale& gate, const DropPath& drop, const Tensor& skip, const Tensor& branch) {
    const Tensor kept = drop.row_scale(skip);
    return kept.defined() ? gate.combine_scaled(skip, branch, kept) : gate.combine(skip, branch);
  };
  const Tensor c = join(gate1_, drop1_, cls, (*attn_)((*norm1_)(concat({cls, patches}, 1))));
  return join(gate2_, drop2_, c, (*mlp_)((*norm2_)(c)));
}

}  // namespace plumb::nn
