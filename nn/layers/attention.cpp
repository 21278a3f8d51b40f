#include "nn/layers/attention.h"

namespace plumb::nn {

Attention::Attention(const AttentionOptions& o)
    : Branch("Attention"), options_(o), qkv_({.in = o.dim, .out = 3 * o.dim, .init = o.init}), proj_({.in = o.dim, .out = o.dim, .init = o.init}) {
  check(o.heads > 0 && o.dim % o.heads == 0, "[attention] expected a width that is a multiple of the heads, got dim {} and {} heads", o.dim, o.heads);
  child("qkv", qkv_);
  child("proj", proj_);
}

void Attention::scale_value_path(double factor) {
  qkv_.weight_init() = qkv_.weight_init().scaled_part(2, 3, factor);
  proj_.weight_init() = proj_.weight_init().scaled(factor);
}

Tensor Attention::forward(const Tensor& x) const {
  const plumb::AttentionOptions drop{
      .drop_key = training() ? options_.drop_key : 0, .dropout = training() ? options_.dropout : 0, .empty = options_.empty};
  if (!inside_) return proj_(attention_qkv(qkv_(x), options_.heads, drop));
  return proj_(inside_->hidden(attention_qkv(inside_->projected(qkv_(inside_->input(x))), options_.heads, drop)));
}

}  // namespace plumb::nn
