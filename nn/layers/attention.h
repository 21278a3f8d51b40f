// Multi-head attention: the options, self-attention and cross-attention, and their base class.
#pragma once

#include "autograd/ops.h"
#include "nn/layers/branch.h"
#include "nn/layers/drop_key.h"
#include "nn/layers/dropout.h"
#include "nn/layers/observers.h"

namespace plumb::nn {

// Options of DropHead in a network.
struct DropHeadOptions {
  double rate = 0;  // in [0, 1)
  // The number of training steps over which the rate falls to 0 and rises again (drop_head_rate()). With 0, the rate is
  // constant.
  std::int64_t steps = 0;
};

// The initial values of the mixes over heads in talking-heads attention (Shazeer et al. 2020), as in CaiT (Touvron et
// al. 2021). With CaiT's truncated normal (std 0.02), the mixed scores are almost 0, so each query attends to all keys
// almost equally, and the rows of the second mix, instead of 1, scale the outputs of the heads. With the identity, the
// new layer equals plain attention.
enum class HeadMix {
  cait,      // a truncated normal of std 0.02, as published
  identity,  // identity matrices, which do not mix at the start
  none       // plain attention, without mixes
};
constexpr auto names_of(HeadMix) { return std::array{"cait", "identity", "none"}; }

// Options of an attention layer.
struct AttentionOptions {
  std::int64_t dim = 0, heads = 0;
  DropKey drop_key = {};  // DropKey with the rate of this layer
  KeyGrid grid = {};   // the grid of the patches, which are the last tokens; DropKey's structured shapes need the grid
  double dropout = 0;  // probability with which dropout sets an attention probability to 0
  DropHeadOptions drop_head = {};
  Init init = Init::truncated_normal(0.02);  // the init of all weights
  bool qkv_bias = true;                      // whether q, k and v have a bias; proj always has a bias
  double proj_drop = 0;                      // probability of dropout after proj, with the bounds of dropout()
  bool causal = false;                       // whether a token attends only to itself and the tokens before it
  HeadMix head_mix = HeadMix::none;          // whether self-attention mixes its heads

  // Returns these options with DropKey's rate converted by by_rate(). Throws Error for invalid options. The message
  // begins with `op`.
  AttentionOptions resolved(const char* op) const;
  // Returns the options of the attention op for one pass. If `training` is false, these options turn off DropKey and
  // dropout.
  AttentionMasking call(bool training) const;
  // Applies DropHead to the output of the heads, [B, T, D], in which the heads are next to each other. If `training` is
  // false, returns `heads` unchanged.
  Tensor drop_heads(const Tensor& heads, bool training) const;
};

// The queries and keys of one pass of an attention layer, as they enter the scores, for observers.
struct AttentionPass {
  Tensor q, k;       // [B, heads, N, E] and [B, heads, M, E], without a graph
  Tensor keep = {};  // the padding mask of the keys, u8 [B, M]; undefined if there is no padding
};

// Base class of attention layers. Parameters: qkv packs q, k and v in this order, with weight [3D, D]; proj has weight
// [D, D]. proj has a bias, and qkv has a bias unless qkv_bias is false. DropKey, dropout and DropHead are off in
// evaluation mode.
class AttentionBranch : public Branch {
 public:
  using Options = AttentionOptions;  // the options of the constructor, for nn::Child
  void scale_value_path(double factor) override;

  // The options, with DropKey's rate converted by by_rate().
  const AttentionOptions& options() const { return options_; }
  // Switches DropKey, dropout and DropHead in training mode on or off. A new layer has them on.
  void drop_in_attention(bool on) { drops_ = on; }
  // Returns the statistics of the keys that a forward pass with these numbers of samples, queries and keys, and without
  // padding, drops in the current random scope. In evaluation mode, all statistics are 0. The function repeats the
  // draws, which takes time, so call it only at steps that are logged.
  DropKeyStatistics drop_key_statistics(std::int64_t batch, std::int64_t queries, std::int64_t keys) const;
  // Calls `observer` in each forward pass, as long as the handle lives, but not in repeated passes (Repeat).
  using Observer = std::function<void(const AttentionPass&)>;
  [[nodiscard("the observer is removed when its handle is destroyed: keep the handle")]] Handle observe(
      Observer observer) const {
    return observers_.add(std::move(observer));
  }
  bool observed() const { return !observers_.empty(); }
  // Returns the attention probabilities of a pass, [B, heads, N, M], without drops (DropKey, dropout, DropHead). The
  // row of a query that may see no key is NaN; in the pass itself, it is 0.
  virtual Tensor probabilities(const AttentionPass& pass) const;

 protected:
  // Messages about invalid options begin with `op`. `kind` is BranchShape::kind.
  AttentionBranch(std::string type, const char* op, std::string kind, const AttentionOptions& options);

  // The layers q, k and v in one, and the layer after the heads.
  const Linear& qkv() const { return qkv_; }
  // Returns the result of a branch from the outputs of the heads [B, N, D], which are next to each other.
  Tensor leave(BranchCall& call, const Tensor& heads) const;
  // Returns the options of the attention op in this pass. `keep` is the padding mask of the keys, u8 [B, M], or
  // undefined.
  AttentionMasking call_options(const Tensor& keep) const;
  // Whether DropKey, dropout and DropHead act in this pass.
  bool drops() const { return drops_ && training(); }
  // Returns q k^T / sqrt(width of a head), [B, heads, N, M].
  Tensor scores(const AttentionPass& pass) const;
  // Returns the scores with -inf for padding, and for keys that a causal query must not see.
  Tensor masked(const Tensor& scores, const AttentionPass& pass) const;
  // Calls the observers. The queries are the first D columns of q [B, N, ..], the keys the D columns of k [B, M, ..]
  // that begin at `k_at`.
  void show(const Tensor& q, const Tensor& k, std::int64_t k_at, const Tensor& keep) const;

 private:
  AttentionOptions options_;
  Child<Linear> qkv_, proj_;
  ChildPtr<Dropout> proj_drop_;  // null without dropout
  bool drops_ = true;
  Observers<AttentionPass> observers_;
};

// Multi-head self-attention (Vaswani et al. 2017), x [B, T, D] -> [B, T, D]. The scores are scaled by head_dim^-1/2.
// StackInputs::position [B, T, D] or [T, D] is added to the inputs of q and k, but not of v. Keys that
// StackInputs::keep marks as padding have the probability 0. If a query may see no key at all, the output of its heads
// is 0. BranchHooks::projected() sees q, k and v without the positions.
//
// With a HeadMix, the layer has two more layers, which mix heads: proj_l mixes the scores before the softmax, proj_w
// mixes the probabilities after it (attention_talking() in ops.h). Each has weight [heads, heads] and bias [heads]. The
// op is not fused: it keeps several [B, heads, T, T] arrays. DropKey drops keys in each head of the mixed scores. With
// a separate mask per entry, a dropped key can still have an effect: proj_w mixes in the probabilities of heads that
// kept the key, and the bias of proj_w gives every key, also a dropped key, the same weight. With DropSharing::heads
// (one mask for all heads), only the effect of the bias remains, so this form is recommended for mixed heads.
class Attention : public AttentionBranch {
 public:
  explicit Attention(const AttentionOptions& options);
  ~Attention() override;
  // With a HeadMix, returns the probabilities after both mixes, whose rows need not sum to 1.
  Tensor probabilities(const AttentionPass& pass) const override;

 protected:
  Tensor forward(BranchCall& call) const override;

 private:
  struct Mix;
  ChildPtr<Mix> proj_l_, proj_w_;  // null for HeadMix::none
};

// Multi-head attention from the stream x [B, N, D] to StackInputs::memory [B, M, D] (Vaswani et al. 2017). The queries
// come from x + StackInputs::position, the keys from memory.x + memory.position, the values from memory.x. Keys that
// memory.keep marks as padding have the probability 0. If all are padding, the output of the heads is 0.
// BranchHooks::projected() sees only q, [B, N, D]. Throws Error without a memory, and for the options causal and
// head_mix.
class CrossAttention : public AttentionBranch {
 public:
  explicit CrossAttention(const AttentionOptions& options);

 protected:
  Tensor forward(BranchCall& call) const override;
};

// Returns the choice of an Attention for a junction, under the name "attn". The block sets dim and init, and the rate
// of DropKey follows its schedule over the blocks.
BranchChoice self_attention(const AttentionOptions& options);
// Returns the choice of a CrossAttention for a junction, under the name "cross", with the same rules.
BranchChoice cross_attention(const AttentionOptions& options);

}  // namespace plumb::nn
