#include "nn/layers/attention.h"

namespace plumb::nn {

Attention::Attention(const AttentionOptions& o)
    : Branch("Attention"), options_(o), qkv_({.in = o.dim, .out = 3 * o.dim, .init = o.init}), proj_({.in = o.dim, .out = o.dim, .init = o.init}) {
  check(o.heads > 0 && o.dim % o.heads == 0, "[attention] expected a width that is a multiple of the heads, got dim {} and {} heads", o.dim, o.heads);
  child("qkv", qkv_);
  child("proj", proj_);
}

Tensor Attention::forward(const Tensor& x) const {
  const plumb::AttentionOptions drop{
      .drop_key = training() ? options_.drop_key : 0, .dropout = training() ? options_.dropout : 0, .empty = options_.empty};
  const Tensor heads = attention_qkv(qkv_(inside_ ? inside_->input(x) : x), options_.heads, drop);
  return proj_(inside_ ? inside_->hidden(heads) : heads);
}

}  // namespace plumb::nn
