#include "nn/io/pretrained.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nn/io/weights.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* metadata_key = "plumb";

// How many blocks "PREFIX.N." there are.
std::int64_t count_blocks(const NamedTensors& tensors, const std::string& prefix) {
  std::int64_t count = 0;
  while (tensors.contains(fmt::format("{}.{}.norm1.weight", prefix, count))) ++count;
  return count;
}

const Shape& shape_of(const NamedTensors& tensors, const std::string& name, std::size_t rank, const std::string& path) {
  const auto found = tensors.find(name);
  check(found != tensors.end() && found->second.shape().rank() == static_cast<std::int64_t>(rank),
        "{}: expected weights of timm's VisionTransformer or Cait, or a file that Plumb wrote: no \"{}\" with {} dimensions in it", path, name, rank);
  return found->second.shape();
}

std::int64_t side_of(std::int64_t tokens, const std::string& what) {
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(tokens)));
  check(side > 0 && side * side == tokens, "{}: expected positions of a square grid, got {}", what, tokens);
  return side;
}

// DeiT III and others (timm's no_embed_class) have a class token without a position.
bool is_square(std::int64_t n) {
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(n)));
  return n > 0 && side * side == n;
}
bool lacks_token_position(std::int64_t positions, bool token) { return token && is_square(positions) && !is_square(positions - 1); }

ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads) {
  const Shape &patches = shape_of(tensors, "patch_embed.proj.weight", 4, path), &positions = shape_of(tensors, "pos_embed", 3, path);
  const std::int64_t dim = patches[0], patch = patches[2];
  check(dim > 0 && patches[1] > 0 && patch > 0 && patch == patches[3], "{}: expected a projection [dim, channels, p, p] of patches, got {}", path,
        patches);
  const std::int64_t classes = shape_of(tensors, "head.weight", 2, path)[0], depth = count_blocks(tensors, "blocks");
  const std::int64_t hidden = shape_of(tensors, "blocks.0.mlp.fc1.weight", 2, path)[0];
  check(hidden > 0 && hidden % dim == 0, "{}: expected MLPs whose width is a multiple of {}, got {}", path, dim, hidden);
  if (const std::int64_t last = count_blocks(tensors, "blocks_token_only"); last > 0) {
    const bool talks = tensors.contains("blocks.0.attn.proj_l.weight");
    CaiTOptions o{.image = patch * side_of(positions[1], path),
                  .channels = patches[1],
                  .patch = patch,
                  .classes = classes,
                  .dim = dim,
                  .depth = depth,
                  .heads = talks ? shape_of(tensors, "blocks.0.attn.proj_l.weight", 2, path)[0] : heads.value_or(dim / 48),
                  .depth_token_only = last,
                  .mlp_ratio = hidden / dim};
    if (!talks) o.attention = make_attention<Attention>;
    return {.options = std::move(o)};
  }
  const bool token = tensors.contains("cls_token");
  const std::int64_t of_patches = positions[1] - (token && !lacks_token_position(positions[1], token));
  check(heads || dim % 64 == 0, "{}: a width of {} is no multiple of 64, the width of a head in timm's models; say how many heads there are", path,
        dim);
  return {.options = ViTOptions{.image = patch * side_of(of_patches, path),
                                .channels = patches[1],
                                .patch = patch,
                                .classes = classes,
                                .dim = dim,
                                .depth = depth,
                                .heads = heads.value_or(dim / 64),
                                .mlp_ratio = hidden / dim,
                                .gate = tensors.contains("blocks.0.ls1.gamma") ? "layerscale" : "pre",
                                .pool = token ? Pool::token : Pool::mean}};
}

template <class Options>
void read_common(const Json& card, Options& o) {
  o.image = card.at("image"), o.channels = card.at("channels"), o.patch = card.at("patch"), o.classes = card.at("classes");
  o.dim = card.at("dim"), o.depth = card.at("depth"), o.heads = card.at("heads"), o.mlp_ratio = card.at("mlp_ratio");
  o.norm_eps = card.at("norm_eps"), o.gate = card.at("gate").get<std::string>();
}

// Sizes of which a model is made at once: a file may say anything.
void check_sizes(const ModelCard& card) {
  std::visit(
      [](const auto& o) {
        for (const std::int64_t size : {o.image, o.channels, o.patch, o.classes, o.dim, o.depth, o.heads, o.mlp_ratio})
          check(0 < size && size <= 1 << 20, "expected sizes from 1 to {}, got {}", 1 << 20, size);
        check(o.image % o.patch == 0 && o.dim % o.heads == 0, "expected an image of whole patches and a width of whole heads, got {}/{} and {}/{}",
              o.image, o.patch, o.dim, o.heads);
      },
      card.options);
}

ModelCard card_from(const std::string& text) {
  const Json json = Json::parse(text);
  ModelCard card;
  if (const std::string model = json.at("model"); model == "cait") {
    CaiTOptions o;
    read_common(json, o);
    o.depth_token_only = json.at("depth_token_only");
    check(0 < o.depth_token_only && o.depth_token_only <= 1 << 20, "expected a second stage, got {} blocks", o.depth_token_only);
    if (!json.at("talking_heads").get<bool>()) o.attention = make_attention<Attention>;
    card.options = std::move(o);
  } else {
    check(model == "vit", "expected a model vit or cait, got {}", model);
    ViTOptions o;
    read_common(json, o);
    const std::string pool = json.at("pool");
    check(pool == "token" || pool == "mean", "expected a pool token or mean, got {}", pool);
    o.pool = pool == "token" ? Pool::token : Pool::mean;
    o.token_block = json.at("token_block");
    card.options = std::move(o);
  }
  card.mean = json.at("mean").get<std::vector<double>>(), card.std = json.at("std").get<std::vector<double>>();
  card.class_names = json.at("class_names").get<std::vector<std::string>>();
  check_sizes(card);
  const auto of_channels = [&](const std::vector<double>& v) { return v.empty() || v.size() == static_cast<std::size_t>(card.channels()); };
  check(of_channels(card.mean) && of_channels(card.std) && card.mean.empty() == card.std.empty(),
        "expected a mean and a deviation for each of {} channels, got {} and {}", card.channels(), card.mean.size(), card.std.size());
  for (const double m : card.mean) check(std::isfinite(m), "expected finite means, got {}", m);
  for (const double s : card.std) check(std::isfinite(s) && s > 0, "expected deviations above 0, got {}", s);
  check(card.class_names.empty() || static_cast<std::int64_t>(card.class_names.size()) == card.classes(), "expected {} names of classes, got {}",
        card.classes(), card.class_names.size());
  return card;
}

// What a card says is made only where the file has it: sizes that it invents would ask for any amount of memory.
void check_fits(const ModelCard& card, const NamedTensors& tensors, const std::string& path) {
  std::visit(
      [&](const auto& o) {
        const auto has = [&](const std::string& name, std::int64_t elements) {
          const auto found = tensors.find(name);
          check(found != tensors.end() && found->second.numel() == elements, "{}: expected \"{}\" with {} elements, as {} says, got {}", path, name,
                elements, "its description", found == tensors.end() ? "none" : to_string(found->second.shape()));
        };
        has("patch_embed.proj.weight", o.dim * o.channels * o.patch * o.patch);
        has(fmt::format("blocks.{}.mlp.fc1.weight", o.depth - 1), o.mlp_ratio * o.dim * o.dim);
        has("head.weight", o.classes * o.dim);
        const auto positions = tensors.find("pos_embed");
        const std::int64_t side = o.image / o.patch;
        check(positions != tensors.end() && positions->second.shape().rank() == 3 && positions->second.dim(0) == 1 &&
                  positions->second.dim(2) == o.dim && std::abs(positions->second.dim(1) - side * side) <= 1,
              "{}: expected positions of {} patches, got {}", path, side * side,
              positions == tensors.end() ? "none" : to_string(positions->second.shape()));
      },
      card.options);
  if (const auto* cait = std::get_if<CaiTOptions>(&card.options))
    check(tensors.contains(fmt::format("blocks_token_only.{}.norm1.weight", cait->depth_token_only - 1)), "{}: expected {} blocks of class attention",
          path, cait->depth_token_only);
}

// Keys' cubic (a = -0.5), as antialiased resizing has it.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// Weights [to, from] of a line of `from` values that becomes one of `to`.
std::vector<double> line_weights(std::int64_t from, std::int64_t to) {
  std::vector<double> weights(static_cast<std::size_t>(to * from), 0);
  const double scale = static_cast<double>(from) / static_cast<double>(to), wide = std::max(scale, 1.0);
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - 2 * wide + 0.5));
    const auto last = std::min(from, static_cast<std::int64_t>(centre + 2 * wide + 0.5));
    double sum = 0;
    for (std::int64_t j = first; j < last; ++j)
      sum += weights[static_cast<std::size_t>(i * from + j)] = cubic((static_cast<double>(j) - centre + 0.5) / wide);
    for (std::int64_t j = first; j < last; ++j) weights[static_cast<std::size_t>(i * from + j)] /= sum;
  }
  return weights;
}

struct Target {
  std::int64_t side, prefix;
  KeyMap timm;
};
Target target_of(const Classifier& model) {
  if (const auto* vit = dynamic_cast<const ViT*>(&model)) {
    const ViTOptions& o = vit->options();
    return {o.image / o.patch, o.pool == Pool::token && o.token_block == 0, timm_vit(o.channels)};
  }
  const auto* cait = dynamic_cast<const CaiT*>(&model);
  check(cait, "[load_pretrained] expected a ViT or a CaiT, got {}", *model.path());
  return {cait->options().image / cait->options().patch, 0, timm_cait(cait->options().channels)};
}

}  // namespace

std::int64_t ModelCard::image() const {
  return std::visit([](const auto& o) { return o.image; }, options);
}
std::int64_t ModelCard::patch() const {
  return std::visit([](const auto& o) { return o.patch; }, options);
}
std::int64_t ModelCard::channels() const {
  return std::visit([](const auto& o) { return o.channels; }, options);
}
std::int64_t ModelCard::classes() const {
  return std::visit([](const auto& o) { return o.classes; }, options);
}

std::optional<ModelCard> card_of(const Module& model) {
  if (const auto* vit = dynamic_cast<const ViT*>(&model)) return ModelCard{.options = vit->options()};
  const auto* cait = dynamic_cast<const CaiT*>(&model);
  if (!cait) return std::nullopt;
  ModelCard card{.options = cait->options()};
  if (!dynamic_cast<const TalkingHeadsAttention*>(&cait->blocks().front()->attn()))
    std::get<CaiTOptions>(card.options).attention = make_attention<Attention>;
  return card;
}

std::map<std::string, std::string> metadata_of(const ModelCard& card) {
  Json json;
  const auto common = [&](const char* model, const auto& o) {
    json = {{"model", model},   {"image", o.image}, {"channels", o.channels},   {"patch", o.patch},       {"classes", o.classes}, {"dim", o.dim},
            {"depth", o.depth}, {"heads", o.heads}, {"mlp_ratio", o.mlp_ratio}, {"norm_eps", o.norm_eps}, {"gate", o.gate->name}};
  };
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) {
    common("vit", *vit);
    json["pool"] = vit->pool == Pool::token ? "token" : "mean";
    json["token_block"] = vit->token_block;
  } else {
    const auto& cait = std::get<CaiTOptions>(card.options);
    common("cait", cait);
    json["depth_token_only"] = cait.depth_token_only;
    const auto attention = cait.attention({.dim = 2, .heads = 1});
    json["talking_heads"] = dynamic_cast<const TalkingHeadsAttention*>(attention.get()) != nullptr;
  }
  json["mean"] = card.mean, json["std"] = card.std, json["class_names"] = card.class_names;
  return {{metadata_key, json.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

ModelCard card_of(const TensorFile& file, const std::string& path, std::optional<std::int64_t> heads) {
  const auto written = file.metadata.find(metadata_key);
  try {
    if (written != file.metadata.end()) {
      ModelCard card = card_from(written->second);
      check_fits(card, file.tensors, path);
      return card;
    }
  } catch (const Json::exception& e) {
    throw Error(fmt::format("{}: its metadata \"{}\" is not what Plumb writes: {}", path, metadata_key, e.what()));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: its metadata \"{}\" describes no model: {}", path, metadata_key, e.what()));
  }
  ModelCard card = card_of_timm(file.tensors, path, heads);
  try {
    check_sizes(card);
    check_fits(card, file.tensors, path);
  } catch (const Error& e) {
    throw Error(std::string(e.what()).starts_with(path) ? std::string(e.what()) : fmt::format("{}: {}", path, e.what()));
  }
  return card;
}

std::unique_ptr<Classifier> make_model(const ModelCard& card) {
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) return std::make_unique<ViT>(*vit);
  return std::make_unique<CaiT>(std::get<CaiTOptions>(card.options));
}

Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side) {
  check(positions.shape().rank() == 3 && positions.dim(0) == 1 && prefix >= 0 && positions.dim(1) > prefix && side > 0,
        "[resized_positions] expected positions [1, {} + a a, D] and a side above 0, got {} and {}", prefix, positions.shape(), side);
  const std::int64_t from = side_of(positions.dim(1) - prefix, "[resized_positions]"), D = positions.dim(2);
  const std::vector<double> given = positions.values(), weights = line_weights(from, side);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  // Along x, then along y: [from, side, D], [side, side, D].
  std::vector<double> across(at(from * side * D), 0), all(given.begin(), given.begin() + prefix * D);
  all.resize(at((prefix + side * side) * D), 0);
  for (std::int64_t y = 0; y < from; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      for (std::int64_t k = 0; k < from; ++k)
        for (std::int64_t d = 0; d < D; ++d)
          across[at((y * side + x) * D + d)] += weights[at(x * from + k)] * given[at((prefix + y * from + k) * D + d)];
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t k = 0; k < from; ++k)
      for (std::int64_t i = 0; i < side * D; ++i) all[at((prefix + y * side) * D + i)] += weights[at(y * from + k)] * across[at(k * side * D + i)];
  return tensor(all, {1, prefix + side * side, D}, {.dtype = positions.dtype(), .device = positions.device()});
}

Adapted load_pretrained(Classifier& model, const TensorFile& file, const std::string& path, Adaptation adaptation) {
  const Target target = target_of(model);
  NamedTensors from = file.tensors;
  const auto patches = from.find("patch_embed.proj.weight");
  const KeyMap map = patches != from.end() && patches->second.shape().rank() == 4 ? target.timm : KeyMap();
  const NamedTensors to = weights(model, map);
  Adapted adapted;
  const auto ours = to.find("pos_embed");
  if (const auto given = from.find("pos_embed"); given != from.end() && ours != to.end()) {
    if (const Shape s = given->second.shape(); s.rank() == 3 && lacks_token_position(s[1], target.prefix == 1))
      given->second = concat({slice(given->second, 1, 0, 1) * 0.0, given->second}, 1);
    const Shape theirs = given->second.shape();
    if (theirs.rank() == 3 && theirs != ours->second.shape() && theirs[2] == ours->second.dim(2)) {
      adapted.positions_from = side_of(theirs[1] - target.prefix, path);
      given->second = resized_positions(given->second, target.prefix, target.side);
    }
  }
  const auto leave = [&](const std::string& name) {
    from.erase(name);
    adapted.as_initialised.push_back(name);
  };
  if (adaptation.new_head)
    for (const char* name : {"head.weight", "head.bias"})
      if (from.contains(name) && to.contains(name) && from.at(name).shape() != to.at(name).shape()) leave(name);
  if (adaptation.new_gates)
    for (const Parameter& p : model.parameters())
      if (const std::string name = name_under(map, p.name); p.role == Role::gate && !from.contains(name)) leave(name);
  for (const auto& [name, value] : to)
    if (!from.contains(name) && std::ranges::find(adapted.as_initialised, name) == adapted.as_initialised.end())
      assign(to, from, fmt::format("[load_pretrained] {}", path));  // says what is missing
  assign(to, from, fmt::format("[load_pretrained] {}", path), {.allow_missing = true});
  return adapted;
}

}  // namespace plumb::nn
