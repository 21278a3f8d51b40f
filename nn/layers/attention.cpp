#include "nn/layers/attention.h"

#include <cmath>
#include <limits>

#include "core/random.h"
#include "nn/layers/drop_head.h"
#include "nn/layers/heads.h"

namespace plumb::nn {

AttentionOptions AttentionOptions::resolved(const char* op) const {
  check(heads > 0 && dim % heads == 0, "[{}] expected a width that is a multiple of the heads, got dim {} and {} heads",
        op, dim, heads);
  survivable_threshold(op, "dropout rate", dropout);
  check(0 <= drop_head && drop_head < 1, "[{}] expected a DropHead rate in [0, 1), got {}", op, drop_head);
  check(drop_head_steps >= 0, "[{}] expected DropHead steps of at least 0, got {}", op, drop_head_steps);
  key_mask(drop_key.rate, drop_key.shape, drop_key.window, drop_key.sharing, grid, grid.cells(),
           0);  // throws for invalid options
  AttentionOptions o = *this;
  o.drop_key = by_rate(drop_key, grid);
  return o;
}

plumb::AttentionOptions AttentionOptions::call(bool training) const {
  if (!training) return {.causal = causal};
  return {.drop_key = drop_key.rate,
          .dropout = dropout,
          .empty = drop_key.empty,
          .causal = causal,
          .drop_shape = drop_key.shape,
          .drop_window = drop_key.window,
          .drop_sharing = drop_key.sharing,
          .grid = grid};
}

Tensor AttentionOptions::drop_heads(const Tensor& x, bool training) const {
  if (!training || drop_head == 0) return x;
  const double rate =
      drop_head_steps ? drop_head_rate(drop_head, random_state_for("drop_head").step, drop_head_steps) : drop_head;
  const Tensor split = reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return reshape(split * drop_head_scale(x.dim(0), heads, rate, x), x.shape());
}

SelfAttention::SelfAttention(std::string type, const char* op, const AttentionOptions& o)
    : Branch(std::move(type)),
      options_(o.resolved(op)),
      qkv_({.in = o.dim, .out = 3 * o.dim, .bias = o.qkv_bias, .init = o.init}),
      proj_({.in = o.dim, .out = o.dim, .init = o.init}) {
  child("qkv", qkv_);
  child("proj", proj_);
  if (o.proj_drop > 0) child("proj_drop", *(proj_drop_ = std::make_unique<Dropout>(o.proj_drop)));
}

void SelfAttention::scale_value_path(double factor) {
  qkv_.weight_init() = qkv_.weight_init().scaled_part(2, 3, factor);
  proj_.scale_init(factor);
}

BranchResult SelfAttention::forward(const BranchCall& call) const {
  const ResultDType qkv_dtype = takes_bf16() ? ResultDType::product : ResultDType::weight;
  const Tensor heads = attend(call.enter(qkv_, {.result = qkv_dtype}));
  return call.leave(proj_, options_.drop_heads(heads, drops()), proj_drop_.get());
}

DropKeyStatistics SelfAttention::drop_key_statistics(std::int64_t batch, std::int64_t tokens) const {
  if (!drops() || options_.drop_key.rate == 0) return {};
  const RandomState& random = random_state_for("drop_key_statistics");
  return nn::drop_key_statistics(options_.drop_key, options_.grid, batch, options_.heads, tokens, tokens,
                                 random_key(random.seed, *path()), random);
}

Tensor SelfAttention::scores(const Tensor& qkv) const {
  const std::int64_t D = options_.dim, T = qkv.dim(1);
  const Tensor q = split_heads(slice(qkv, 2, 0, D), options_.heads),
               k = split_heads(slice(qkv, 2, D, 2 * D), options_.heads);
  const Tensor all = matmul(q, k, false, true) * (1 / std::sqrt(static_cast<double>(D / options_.heads)));
  if (!options_.causal) return all;
  std::vector<double> later(static_cast<std::size_t>(T * T), 0);
  for (std::int64_t i = 0; i < T; ++i)
    for (std::int64_t j = i + 1; j < T; ++j)
      later[static_cast<std::size_t>(i * T + j)] = -std::numeric_limits<double>::infinity();
  return all + tensor(later, {T, T}, {.dtype = qkv.dtype(), .device = qkv.device()});
}

Tensor SelfAttention::probabilities(const Tensor& qkv) const { return softmax(scores(qkv)); }

BranchChoice self_attention(const AttentionOptions& options, AttentionFactory make) {
  return {"attn", [options, make = std::move(make)](const BranchSite& site) -> std::unique_ptr<Branch> {
            AttentionOptions o = options;
            o.dim = site.dim;
            o.init = site.init();
            o.drop_key.rate = rate_at(o.drop_key.schedule, o.drop_key.rate, site.block, site.blocks);
            std::unique_ptr<SelfAttention> attention = make(o);
            // q, k and v count as three matrices.
            if (attention) attention->first().weight_init() = site.init(3);
            return attention;
          }};
}

Attention::Attention(const AttentionOptions& o) : SelfAttention("Attention", "attention", o) {}

Tensor Attention::attend(const Tensor& qkv) const {
  return attention_qkv(qkv, options().heads, options().call(drops()));
}

}  // namespace plumb::nn
