#include "nn/blocks/stack.h"

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

// The tensors of `inputs` to which gradients flow.
std::vector<Tensor*> differentiable(StackInputs& inputs) {
  std::vector<Tensor*> all{&inputs.position, &inputs.memory.x, &inputs.memory.position};
  std::erase_if(all, [](const Tensor* t) { return !t->defined(); });
  return all;
}

Stream advance_checkpointed(const Block& block, const Stream& s, const StackInputs& inputs) {
  Tensors all{s.x};
  all.insert(all.end(), s.carried.begin(), s.carried.end());
  const auto of_stream = static_cast<std::ptrdiff_t>(all.size());
  StackInputs copy = inputs;
  for (const Tensor* t : differentiable(copy)) all.push_back(*t);
  auto shapes = std::make_shared<std::vector<Shape>>();
  const Tensor packed = checkpoint(
      [&block, shapes, of_stream, inputs](const Tensors& in) {
        StackInputs again = inputs;
        auto next = in.begin() + of_stream;
        for (Tensor* t : differentiable(again)) *t = *next++;
        Stream inner{in[0], {in.begin() + 1, in.begin() + of_stream}};
        block.advance(inner, again);
        shapes->assign(1, inner.x.shape());
        for (const Tensor& t : inner.carried) shapes->push_back(t.shape());
        return pack(inner);
      },
      all);
  return unpack(packed, *shapes);
}

}  // namespace

std::vector<BranchChoice> transformer_block(const AttentionOptions& attention, const MlpOptions& hidden) {
  return {self_attention(attention), mlp(hidden)};
}

Stack::Stack(const StackOptions& o) : Layer("Stack"), options_(o), blocks_(this, o.blocks) {
  check(o.depth >= 1, "[stack] expected a depth of at least 1, got {}", o.depth);
  const auto make_norm = [&] { return o.method->make_norm(o.layout, o.dim, o.norm_eps); };
  if (o.method->embedding_norm) norm_embedding_ = {this, "norm_embedding", make_norm()};
  const TrainingStep step;
  for (std::int64_t i = 0; i < o.depth; ++i) blocks_.add(o, i, step);
  if (o.final_norm) norm_ = {this, "norm", make_norm()};
  if (step.needed()) step.attach(*this, parameter("training_step", {1}, Init::constant(0), Role::counter));
}

Stream Stack::open(const Tensor& x) const {
  const Tensor in = norm_embedding_ ? (*norm_embedding_)(x) : x;
  return method().open ? method().open(in) : Stream{in};
}

void Stack::advance(Stream& s, std::int64_t first, std::int64_t last, const StackInputs& inputs) const {
  for (std::int64_t i = first; i < last; ++i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    if (checkpoint_blocks_)
      s = advance_checkpointed(block, s, inputs);
    else
      block.advance(s, inputs);
  }
}

Tensor Stack::operator()(const Tensor& x, const StackInputs& inputs) const {
  return compute_with_hooks(x, [&](const Tensor& in) { return close(run(in, inputs)); });
}

Stream Stack::run(const Tensor& x, const StackInputs& inputs) const {
  Stream s = open(x);
  advance(s, 0, options_.depth, inputs);
  return s;
}

std::vector<Junction*> Stack::junctions() const {
  std::vector<Junction*> all;
  for (const Block& block : blocks_)
    for (const auto& junction : block.junctions()) all.push_back(junction.get());
  return all;
}

void Stack::drop_in_attention(bool on) {
  for (Junction* junction : junctions())
    if (auto* attention = dynamic_cast<AttentionBranch*>(&junction->branch())) attention->drop_in_attention(on);
}

Tensor Stack::close(const Stream& s) const {
  if (method().close) return method().close(s, norm_.get());
  return norm_ ? (*norm_)(s.x) : s.x;
}

}  // namespace plumb::nn
