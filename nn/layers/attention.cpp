#include "nn/layers/attention.h"

#include <cmath>
#include <limits>

#include "core/drop_key.h"
#include "core/random.h"
#include "nn/layers/branch_context.h"
#include "nn/layers/drop_head.h"
#include "nn/layers/heads.h"

namespace plumb::nn {

AttentionOptions AttentionOptions::resolved(const char* op) const {
  check(heads > 0 && dim % heads == 0, "[{}] expected a width that is a multiple of the heads, got dim {} and {} heads",
        op, dim, heads);
  survivable_threshold(op, "dropout rate", dropout);
  check(0 <= drop_head.rate && drop_head.rate < 1, "[{}] expected a DropHead rate in [0, 1), got {}", op,
        drop_head.rate);
  check(drop_head.steps >= 0, "[{}] expected DropHead steps of at least 0, got {}", op, drop_head.steps);
  key_mask(drop_key.rate, drop_key.shape, drop_key.window, drop_key.sharing, grid,
           std::numeric_limits<std::int64_t>::max(), 0);  // throws for invalid options
  AttentionOptions o = *this;
  o.drop_key = by_rate(drop_key, grid);
  return o;
}

AttentionMasking AttentionOptions::call(bool training) const {
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
  const auto& [most, steps] = drop_head;
  if (!training || most == 0) return x;
  const double rate = steps ? drop_head_rate(most, random_state_for("drop_head").step, steps) : most;
  const Tensor split = reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return reshape(split * drop_head_scale(x.dim(0), heads, rate, x), x.shape());
}

AttentionBranch::AttentionBranch(std::string type, const char* op, std::string kind, const AttentionOptions& o)
    : Branch(std::move(type), {.kind = std::move(kind), .heads = o.heads, .weight_layers = 4}),
      options_(o.resolved(op)),
      qkv_{this, "qkv", {.in = o.dim, .out = extent_product(op, {3, o.dim}), .bias = o.qkv_bias, .init = o.init}},
      proj_{this, "proj", {.in = o.dim, .out = o.dim, .init = o.init}} {
  if (o.proj_drop > 0) proj_drop_ = {this, "proj_drop", make<Dropout>(o.proj_drop)};
}

void AttentionBranch::scale_value_path(double factor) {
  qkv_.weight_init() = qkv_.weight_init().scaled_part(2, 3, factor);
  proj_.scale_init(factor);
}

Tensor AttentionBranch::leave(BranchCall& call, const Tensor& heads) const {
  return call.leave(proj_, options_.drop_heads(heads, drops()), proj_drop_.get());
}

AttentionMasking AttentionBranch::call_options(const Tensor& keep) const {
  AttentionMasking o = options_.call(drops());
  if (keep.defined()) {
    check(keep.shape().rank() == 2, "[attention] expected a padding mask [B, keys], got {}", keep.shape());
    o.keep = reshape(keep, {keep.dim(0), 1, 1, keep.dim(1)});
  }
  return o;
}

DropKeyStatistics AttentionBranch::drop_key_statistics(std::int64_t batch, std::int64_t queries,
                                                       std::int64_t keys) const {
  if (!drops() || options_.drop_key.rate == 0) return {};
  const RandomState& random = random_state_for("drop_key_statistics");
  return nn::drop_key_statistics(options_.drop_key, options_.grid, batch, options_.heads, queries, keys,
                                 random_key(random.seed, *path()), random, options_.causal);
}

void AttentionBranch::show(const Tensor& q, const Tensor& k, std::int64_t k_at, const Tensor& keep) const {
  if (!observed() || current_repeat() != Repeat::none) return;
  const NoGrad no_grad;
  const RepeatScope observing(Repeat::observer);
  const auto heads = [&](const Tensor& x, std::int64_t first) {
    const Tensor part = slice(x.detach(), 2, first, first + options_.dim);
    return split_heads(part.dtype() == DType::bf16 ? cast(part, DType::f32) : part, options_.heads);
  };
  observers_.call({.q = heads(q, 0), .k = heads(k, k_at), .keep = keep});
}

Tensor AttentionBranch::scores(const AttentionPass& pass) const {
  return matmul(pass.q, pass.k, false, true) * (1 / std::sqrt(static_cast<double>(options_.dim / options_.heads)));
}

Tensor AttentionBranch::masked(const Tensor& scores, const AttentionPass& pass) const {
  const std::int64_t N = pass.q.dim(2), M = pass.k.dim(2);
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor all = scores;
  if (pass.keep.defined()) {
    const Tensor keep = reshape(pass.keep, {pass.keep.dim(0), 1, 1, M});
    all = where(broadcast_to(keep, all.shape()), all, -infinity);
  }
  if (!options_.causal) return all;
  std::vector<double> later(static_cast<std::size_t>(N * M), 0);
  for (std::int64_t i = 0; i < N; ++i)
    for (std::int64_t j = i + M - N + 1; j < M; ++j) later[static_cast<std::size_t>(i * M + j)] = -infinity;
  return all + tensor(later, {N, M}, {.dtype = all.dtype(), .device = all.device()});
}

Tensor AttentionBranch::probabilities(const AttentionPass& pass) const { return softmax(masked(scores(pass), pass)); }

namespace {

// Adds the products of positions [T, D] or [B, T, D] with the rows first .. last - 1 of a weight to the first columns
// of x, which was computed from inputs without positions. If all samples share the positions, this is one small
// product.
Tensor with_position(const Tensor& x, const Tensor& position, const Tensor& weight, std::int64_t first,
                     std::int64_t last) {
  if (!position.defined()) return x;
  const Tensor added = linear(position, slice(weight, 0, first, last), {});
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(static_cast<std::size_t>(added.shape().rank()), {0, 0});
  widths.back().second = x.dim(-1) - added.dim(-1);
  return x + pad(added, widths);
}

Init mix_init(std::int64_t heads, HeadMix mix) {
  if (mix == HeadMix::cait) return Init::truncated_normal(0.02);
  std::vector<double> identity(static_cast<std::size_t>(extent_product("attention", {heads, heads})));
  for (std::int64_t i = 0; i < heads; ++i) identity[static_cast<std::size_t>(i * (heads + 1))] = 1;
  return Init::values(identity);
}

}  // namespace

// A mix over heads.
struct Attention::Mix : Module {
  Mix(std::int64_t heads, HeadMix init)
      : Module("Mix"),
        weight(parameter("weight", {heads, heads}, mix_init(heads, init), Role::weight)),
        bias(parameter("bias", {heads}, Init::constant(0), Role::bias)) {}
  Tensor operator()(const Tensor& x) const { return mix_heads(x, weight, bias); }
  Tensor weight, bias;
};

Attention::Attention(const AttentionOptions& o) : AttentionBranch("Attention", "attention", "attn", o) {
  if (o.head_mix == HeadMix::none) return;
  proj_l_ = {this, "proj_l", make<Mix>(o.heads, o.head_mix)};
  proj_w_ = {this, "proj_w", make<Mix>(o.heads, o.head_mix)};
}

Attention::~Attention() = default;

Tensor Attention::forward(BranchCall& call) const {
  const auto& [position, keep, memory] = call.inputs();
  const std::int64_t D = options().dim, heads = options().heads;
  const bool narrow = !position.defined() && !proj_l_ && options().drop_head.rate == 0;  // the next op accepts bf16
  const Tensor qkv_alone = call.enter_fused(qkv(), {.result = narrow ? ResultDType::product : ResultDType::weight}),
               packed = with_position(qkv_alone, position, qkv().weight(), 0, 2 * D);
  show(packed, packed, D, keep);
  if (!proj_l_) return leave(call, attention_qkv(packed, heads, call_options(keep)));
  const auto part = [&](std::int64_t i) { return split_heads(slice(packed, 2, i * D, (i + 1) * D), heads); };
  return leave(call, merge_heads(attention_talking(part(0), part(1), part(2), proj_l_->weight, proj_l_->bias,
                                                   proj_w_->weight, proj_w_->bias, call_options(keep))));
}

Tensor Attention::probabilities(const AttentionPass& pass) const {
  if (!proj_l_) return AttentionBranch::probabilities(pass);
  return (*proj_w_)(softmax(masked((*proj_l_)(scores(pass)), pass)));
}

namespace {

// Returns the choice of a layer with the options that its junction decides. q, k and v count as three matrices.
template <class A>
BranchChoice choice_of(const std::string& name, const AttentionOptions& options) {
  return {name, [options](const JunctionPlace& place) -> std::unique_ptr<Branch> {
            AttentionOptions o = options;
            o.dim = place.dim;
            o.init = place.init();
            o.drop_key.rate = rate_at(o.drop_key.schedule, o.drop_key.rate, place.block, place.blocks);
            auto attention = std::make_unique<A>(o);
            attention->first().weight_init() = place.init(3);
            return attention;
          }};
}

}  // namespace

BranchChoice self_attention(const AttentionOptions& options) { return choice_of<Attention>("attn", options); }
BranchChoice cross_attention(const AttentionOptions& options) { return choice_of<CrossAttention>("cross", options); }

CrossAttention::CrossAttention(const AttentionOptions& o)
    : AttentionBranch("CrossAttention", "cross_attention", "cross", o) {
  check(!o.causal, "[cross_attention] expected attention to all of the memory, got the option causal");
  check(o.head_mix == HeadMix::none, "[cross_attention] expected no mix of heads, got HeadMix::{}",
        enum_name(o.head_mix));
}

Tensor CrossAttention::forward(BranchCall& call) const {
  const MemoryTokens& memory = call.memory();
  const std::int64_t D = options().dim;
  const Tensor& position = call.inputs().position;
  const Tensor q = call.enter([&](const Tensor& u) { return qkv().rows(position.defined() ? u + position : u, 0, D); });
  const Tensor kv = with_position(qkv().rows(memory.x, D, 3 * D), memory.position, qkv().weight(), D, 2 * D);
  show(q, kv, 0, memory.keep);
  return leave(call, attention_q_kv(q, kv, options().heads, call_options(memory.keep)));
}

}  // namespace plumb::nn
