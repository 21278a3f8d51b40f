#include "nn/layers/attention.h"

#include "core/random.h"
#include "nn/layers/drop_head.h"

namespace plumb::nn {

Attention::Attention(const AttentionOptions& o)
    : Branch("Attention"), options_(o), qkv_({.in = o.dim, .out = 3 * o.dim, .init = o.init}), proj_({.in = o.dim, .out = o.dim, .init = o.init}) {
  check(o.heads > 0 && o.dim % o.heads == 0, "[attention] expected a width that is a multiple of the heads, got dim {} and {} heads", o.dim, o.heads);
  check(0 <= o.drop_head && o.drop_head < 1, "[attention] expected a DropHead rate in [0, 1), got {}", o.drop_head);
  check(o.drop_head_steps >= 0, "[attention] expected a number of training steps for DropHead, or 0, got {}", o.drop_head_steps);
  const KeyGrid grid{o.grid_height, o.grid_width};
  key_drop(o.drop_key.rate, o.drop_key.shape, o.drop_key.window, o.drop_key.sharing, grid, grid.cells(), 0);  // checks
  child("qkv", qkv_);
  child("proj", proj_);
}

Tensor Attention::forward(const Tensor& x) const {
  const AttentionOptions& o = options_;
  plumb::AttentionOptions call;
  if (training())
    call = {.drop_key = o.drop_key.rate,
            .dropout = o.dropout,
            .empty = o.drop_key.empty,
            .drop_shape = o.drop_key.shape,
            .drop_window = o.drop_key.window,
            .drop_sharing = o.drop_key.sharing,
            .grid = {o.grid_height, o.grid_width}};
  const Tensor heads = drop_heads(attention_qkv(qkv_(inside_ ? inside_->input(x) : x), o.heads, call));
  return proj_(inside_ ? inside_->hidden(heads) : heads);
}

Tensor Attention::drop_heads(const Tensor& heads) const {
  if (!training() || options_.drop_head == 0) return heads;
  const std::int64_t B = heads.dim(0), T = heads.dim(1), H = options_.heads, steps = options_.drop_head_steps;
  const double rate = steps ? drop_head_rate(options_.drop_head, random_state().step, steps) : options_.drop_head;
  return reshape(reshape(heads, {B, T, H, heads.dim(2) / H}) * drop_head_scale(B, H, rate, heads), heads.shape());
}

DropKeyStatistics Attention::drop_key_statistics(std::int64_t batch, std::int64_t tokens) const {
  if (!training()) return {};
  const RandomState& random = random_state();
  return nn::drop_key_statistics(options_.drop_key, {options_.grid_height, options_.grid_width}, batch, options_.heads, tokens, tokens,
                                 random_key(random.seed, *path()), random);
}

}  // namespace plumb::nn
