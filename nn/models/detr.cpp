#include "nn/models/detr.h"

#include <nlohmann/json.hpp>

#include "nn/layers/sine_positions.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {
namespace {

AttentionOptions attention_of(const DetrOptions& o, const DetrDrops& drops) {
  return {.heads = o.heads, .drop_key = drops.drop_key, .dropout = drops.dropout, .proj_drop = o.dropout};
}

StackOptions stack_of(const DetrOptions& o, std::int64_t depth, std::vector<BranchChoice> junctions, bool final_norm) {
  junctions.push_back(mlp({.hidden = o.hidden, .activation = Activation::relu, .drop = o.dropout}));
  return {.dim = o.dim,
          .depth = depth,
          .method = o.method,
          .junctions = std::move(junctions),
          .norm_eps = 1e-5,
          .recipe = recipe_of(*o.method, o.recipe),
          .final_norm = final_norm};
}

}  // namespace

class Detr::Backbone : public Layer {
 public:
  explicit Backbone(const DetrOptions& o) : Layer("Backbone") {
    check(!o.backbone.empty(), "[detr] expected at least one convolution in the backbone, got none");
    std::int64_t in = o.channels;
    for (const std::int64_t out : o.backbone) {
      convs_.add({.in = in, .out = out, .kernel = 3, .stride = 2, .padding = 1, .bias = false});
      norms_.add(out);
      in = out;
    }
  }

 protected:
  Tensor forward(const Tensor& images) const override {
    Tensor x = images;
    for (std::size_t i = 0; i < convs_.size(); ++i) x = relu(norms_[i](convs_[i](x)));
    return x;
  }

 private:
  Children<Conv2d> convs_{this, "conv"};
  Children<BatchNorm2d> norms_{this, "norm"};
};

// The MLP of three layers that predicts boxes.
class Detr::BoxHead : public Layer {
 public:
  explicit BoxHead(std::int64_t dim) : Layer("BoxHead") {
    for (const std::int64_t out : {dim, dim, std::int64_t{4}})
      layers_.add({.in = dim, .out = out, .init = Init::fan_in_uniform(), .bias_init = Init::constant(0)});
  }

 protected:
  Tensor forward(const Tensor& x) const override { return sigmoid(layers_[2](relu(layers_[1](relu(layers_[0](x)))))); }

 private:
  Children<Linear> layers_{this, "layers"};
};

Detr::~Detr() = default;

Detr::Detr(const DetrOptions& o)
    : Layer("Detr"),
      options_(o),
      backbone_(this, "backbone", make<Backbone>(o)),
      input_proj_{
          this, "input_proj", {.in = o.backbone.back(), .out = o.dim, .kernel = 1, .init = Init::fan_in_uniform()}},
      // As in the authors' code, the encoder ends in a norm if its blocks begin with norms. A method that closes its
      // stream itself, such as ResiDual, needs the norm as well.
      encoder_(this, "encoder",
               stack_of(o, o.encoder, {self_attention(attention_of(o, o.encoder_attention))},
                        o.method->norm == Norm::pre || o.method->close)),
      decoder_(this, "decoder",
               stack_of(o, o.decoder,
                        {self_attention(attention_of(o, o.decoder_attention)),
                         cross_attention(attention_of(o, o.cross_attention))},
                        true)),
      class_embed_{this,
                   "class_embed",
                   {.in = o.dim, .out = extent_sum("detr", {o.classes, 1}), .init = Init::fan_in_uniform()}},
      bbox_embed_(this, "bbox_embed", make<BoxHead>(o.dim)) {
  check(o.classes >= 1 && o.queries >= 1, "[detr] expected at least one class and one query, got {} and {}", o.classes,
        o.queries);
  check(o.dim % 4 == 0, "[detr] expected a width that is a multiple of 4, got {}", o.dim);
  query_embed_ = parameter("query_embed", {o.queries, o.dim}, Init::normal(1), Role::position);
  backbone_->each_parameter([&](const std::string&, Parameter& p) { p.lr_factor() *= o.backbone_rate; });
  initialize(*this, o.seed);
}

std::string Detr::card() const { return card_text<nlohmann::ordered_json>(options_); }

std::pair<std::int64_t, std::int64_t> Detr::grid(std::int64_t height, std::int64_t width) const {
  for (std::size_t i = 0; i < options_.backbone.size(); ++i) height = (height + 1) / 2, width = (width + 1) / 2;
  return {height, width};
}

MemoryTokens Detr::encode(const Tensor& images, const Tensor& keep) const {
  const Tensor map = input_proj_((*backbone_)(images));  // [B, D, h, w]
  const std::int64_t B = map.dim(0), D = map.dim(1), h = map.dim(2), w = map.dim(3);
  MemoryTokens memory{.x = {}};
  {
    const DefaultsScope like({.dtype = map.dtype(), .device = map.device()});
    if (keep.defined()) {
      check(keep.dtype() == DType::u8 && keep.shape() == (Shape{B, images.dim(2), images.dim(3)}),
            "[detr] expected a u8 mask of the pixels {}, got {}", (Shape{B, images.dim(2), images.dim(3)}),
            describe(keep));
      // A cell of the map is padding if the pixel at its corner is (nearest neighbour).
      const auto every = [](std::int64_t cells, std::int64_t pixels) {
        std::vector<std::int64_t> at;
        for (std::int64_t i = 0; i < cells; ++i) at.push_back(i * pixels / cells);
        return at;
      };
      const auto pick = [&](const Tensor& x, int axis, std::int64_t cells) {
        return index_select(x, axis, integers(every(cells, x.dim(axis)), {cells}, x.device()));
      };
      const Tensor cells = pick(pick(keep, 1, h), 2, w);
      memory.keep = reshape(cells, {B, h * w});
      const Tensor some = any(memory.keep, 1);
      check(all(some).item() != 0, "[detr] expected pixels in every image, got an image that is padding only");
      memory.position = sine_positions(cells, D);
    } else {
      memory.position = sine_positions(h, w, D);
    }
  }
  const Tensor tokens = permute(reshape(map, {B, D, h * w}), {0, 2, 1});
  memory.x = encoder_(tokens, {.position = memory.position, .keep = memory.keep});
  return memory;
}

Detections Detr::decode(const MemoryTokens& memory) const {
  const Defaults like{.dtype = memory.x.dtype(), .device = memory.x.device()};
  const StackInputs inputs{.position = query_embed_, .memory = memory};
  Stream stream = decoder_.open(zeros({memory.x.dim(0), options_.queries, options_.dim}, like));
  Tensors layers;
  for (std::int64_t i = 0; i < options_.decoder; ++i) {
    decoder_.advance(stream, i, i + 1, inputs);
    layers.push_back(decoder_.close(stream));
  }
  const Tensor all = plumb::stack(layers);  // [L, B, Q, D]
  return {.logits = class_embed_(all), .boxes = (*bbox_embed_)(all)};
}

Detections Detr::detect(const Tensor& images, const Tensor& keep) const {
  check_initialised();
  const PathScope scope(path());
  return decode(encode(images, keep));
}

Tensor Detr::forward(const Tensor& images) const {
  const Detections found = decode(encode(images));
  return concat({found.logits[-1], found.boxes[-1]}, -1);
}

}  // namespace plumb::nn
