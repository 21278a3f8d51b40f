#include "nn/block.h"

#include <string_view>

namespace plumb::nn {

Block::Block(const BlockOptions& o)
    : Layer("Block"),
      index_(o.block),
      placement_(method_named(o.gate).norm),
      attn_({.dim = o.dim,
             .heads = o.heads,
             .drop_key = {.rate = o.drop_key, .empty = o.empty},
             .dropout = o.attention_dropout,
             .init = weight_init(o.base)}),
      mlp_({.dim = o.dim, .hidden = o.hidden, .init = weight_init(o.base)}),
      drop1_(o.drop_path, 0),
      drop2_(o.drop_path, 1),
      gates_(method_named(o.gate).build({.dim = o.dim, .heads = o.heads, .block = o.block, .blocks = o.blocks})) {
  check(gates_.attn && gates_.mlp, "[block] expected method \"{}\" to build a gate for each branch, got none", o.gate);
  if (placement_ != Norm::none) {
    child("norm1", norm1_.emplace(o.dim, o.norm_eps));
    child("norm2", norm2_.emplace(o.dim, o.norm_eps));
  }
  child("attn", attn_);
  child("mlp", mlp_);
  child("drop_path1", drop1_);
  child("drop_path2", drop2_);
  for (auto& [name, module] : gates_.modules) child(name, *module);
  attn_.first().weight_init() = weight_init(o.base, 3);
  for (const auto& [gate, branch] : {std::pair<Gate*, Branch*>{gates_.attn, &attn_}, {gates_.mlp, &mlp_}}) {
    gate->init_branch(*branch);
    branch->set_inside(gate->inside());
  }
}

Tensor Block::forward(const Tensor& x) const { return join(join(x, attn_, norm1_, *gates_.attn, drop1_), mlp_, norm2_, *gates_.mlp, drop2_); }

Tensor Block::join(const Tensor& x, const Branch& branch, const std::optional<LayerNorm>& norm, const Gate& gate, const DropPath& drop) const {
  const Tensor f = branch(placement_ == Norm::pre ? (*norm)(x) : x);
  const Tensor row_scale = drop.row_scale(f);
  Tensor y;
  {
    const PathScope scope(gate.path());
    y = row_scale.defined() ? gate.combine_scaled(x, f, row_scale) : gate.combine(x, f);
    check(y.shape() == x.shape(), "[gate] expected combine to return the shape of the stream {}, got {}", x.shape(), y.shape());
  }
  if (placement_ == Norm::post) y = (*norm)(y);
  if (std::string_view(current_phase()) == "forward")  // once a pass: not again when a checkpoint recomputes
    for (const auto& [id, observer] : std::map(*observers_)) observer({index_, branch, gate, x, f, y});
  return y;
}

Handle Block::observe(Observer observer) {
  const int id = observers_->empty() ? 0 : observers_->rbegin()->first + 1;
  (*observers_)[id] = std::move(observer);
  return Handle([weak = std::weak_ptr(observers_), id] {
    if (const auto alive = weak.lock()) alive->erase(id);
  });
}

}  // namespace plumb::nn
