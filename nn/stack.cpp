#include "nn/stack.h"

#include "autograd/checkpoint.h"

namespace plumb::nn {
namespace {

// checkpoint() returns a single tensor: pack() concatenates the tensors of a stream, and unpack() splits them again.
Tensor pack(const Stream& s) {
  if (s.carried.empty()) return s.x;
  Tensors flat{reshape(s.x, {s.x.numel()})};
  for (const Tensor& t : s.carried) flat.push_back(reshape(t, {t.numel()}));
  return concat(flat, 0);
}

Stream unpack(const Tensor& packed, const std::vector<Shape>& shapes) {
  if (shapes.size() == 1) return {packed};
  Tensors parts;
  std::int64_t begin = 0;
  for (const Shape& shape : shapes) {
    parts.push_back(reshape(slice(packed, 0, begin, begin + shape.numel()), shape));
    begin += shape.numel();
  }
  return {parts[0], {parts.begin() + 1, parts.end()}};
}

Stream advance_checkpointed(const Block& block, const Stream& s) {
  Tensors inputs{s.x};
  inputs.insert(inputs.end(), s.carried.begin(), s.carried.end());
  auto shapes = std::make_shared<std::vector<Shape>>();
  const Tensor packed = checkpoint(
      [&block, shapes](const Tensors& in) {
        Stream inner{in[0], {in.begin() + 1, in.end()}};
        block.advance(inner);
        shapes->assign(1, inner.x.shape());
        for (const Tensor& t : inner.carried) shapes->push_back(t.shape());
        return pack(inner);
      },
      inputs);
  return unpack(packed, *shapes);
}

}  // namespace

Stack::Stack(const StackOptions& o) : Layer("Stack"), options_(o) {
  check(o.depth >= 1, "[stack] expected a depth of at least 1, got {}", o.depth);
  check(o.heads > 0 && o.dim % o.heads == 0,
        "[stack] expected a width that is a multiple of the heads, got dim {} and {} heads", o.dim, o.heads);
  for (std::int64_t i = 0; i < o.depth; ++i) {
    AttentionOptions drop{.dim = o.dim,
                          .heads = o.heads,
                          .drop_key = o.drop_key,
                          .grid = o.grid,
                          .dropout = o.attention_dropout,
                          .drop_head = o.drop_head.rate,
                          .drop_head_steps = o.drop_head.steps};
    drop.drop_key.rate = rate_at(o.drop_key.schedule, o.drop_key.rate, i, o.depth);
    blocks_.push_back(
        std::make_unique<Block>(BlockOptions{.dim = o.dim,
                                             .heads = o.heads,
                                             .hidden = o.hidden,
                                             .gate = o.gate,
                                             .block = i,
                                             .blocks = o.depth,
                                             .norm_eps = o.norm_eps,
                                             .recipe = o.recipe,
                                             .drop = drop,
                                             .drop_path = rate_at(o.drop_path.schedule, o.drop_path.rate, i, o.depth),
                                             .drop_path_form = o.drop_path.form,
                                             .attention = o.attention}));
    child(fmt::format("blocks.{}", i), *blocks_.back());
  }
  if (o.final_norm) {
    norm_ = o.gate->norm_layer(o.dim, o.norm_eps);
    child("norm", *norm_);
  }
}

Stream Stack::open(const Tensor& x) const { return method().open ? method().open(x) : Stream{x}; }

void Stack::advance(Stream& s, std::int64_t first, std::int64_t last) const {
  for (std::int64_t i = first; i < last; ++i) {
    const Block& block = *blocks_.at(static_cast<std::size_t>(i));
    if (checkpoint_blocks_)
      s = advance_checkpointed(block, s);
    else
      block.advance(s);
  }
}

Stream Stack::run(const Tensor& x) const {
  Stream s = open(x);
  advance(s, 0, options_.depth);
  return s;
}

void Stack::drop_in_attention(bool on) {
  for (const auto& block : blocks_)
    if (auto* attention = dynamic_cast<SelfAttention*>(&block->attn())) attention->drop_in_attention(on);
}

Tensor Stack::close(const Stream& s) const {
  if (method().close) return method().close(s, norm_.get());
  return norm_ ? (*norm_)(s.x) : s.x;
}

}  // namespace plumb::nn
