#include "nn/io/pretrained.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "core/precision.h"
#include "nn/io/weights.h"
#include "nn/name_remedies.h"

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
        "{}: expected weights of timm's VisionTransformer or Cait, or a file that Plumb wrote: no \"{}\" with {} "
        "dimensions in it",
        path, name, rank);
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
bool lacks_token_position(std::int64_t positions, bool token) {
  return token && is_square(positions) && !is_square(positions - 1);
}

ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads) {
  const Shape &patches = shape_of(tensors, "patch_embed.proj.weight", 4, path),
              &positions = shape_of(tensors, "pos_embed", 3, path);
  const std::int64_t dim = patches[0], patch = patches[2];
  check(dim > 0 && patches[1] > 0 && patch > 0 && patch == patches[3],
        "{}: expected a projection [dim, channels, p, p] of patches, got {}", path, patches);
  const std::int64_t classes = shape_of(tensors, "head.weight", 2, path)[0], depth = count_blocks(tensors, "blocks");
  const std::int64_t hidden = shape_of(tensors, "blocks.0.mlp.fc1.weight", 2, path)[0];
  check(hidden > 0, "{}: expected MLPs of at least one hidden unit, got none", path);
  const double mlp_ratio = static_cast<double>(hidden) / static_cast<double>(dim);
  if (const std::int64_t last = count_blocks(tensors, "blocks_token_only"); last > 0) {
    const bool talks = tensors.contains("blocks.0.attn.proj_l.weight");
    CaiTOptions o{
        .image = patch * side_of(positions[1], path),
        .patch = patch,
        .channels = patches[1],
        .classes = classes,
        .dim = dim,
        .depth = depth,
        .heads = talks ? shape_of(tensors, "blocks.0.attn.proj_l.weight", 2, path)[0] : heads.value_or(dim / 48),
        .depth_token_only = last,
        .mlp_ratio = mlp_ratio};
    if (!talks) o.attention = make_attention<Attention>;
    return {.options = std::move(o)};
  }
  const bool token = tensors.contains("cls_token");
  const std::int64_t of_patches = positions[1] - (token && !lacks_token_position(positions[1], token));
  check(heads || dim % 64 == 0,
        "{}: a width of {} is no multiple of 64, the width of a head in timm's models; say how many heads there are",
        path, dim);
  return {.options = ViTOptions{.image = patch * side_of(of_patches, path),
                                .patch = patch,
                                .channels = patches[1],
                                .classes = classes,
                                .dim = dim,
                                .depth = depth,
                                .heads = heads.value_or(dim / 64),
                                .mlp_ratio = mlp_ratio,
                                .gate = tensors.contains("blocks.0.ls1.gamma") ? "layerscale" : "pre",
                                .pool = token ? Pool::token : Pool::mean}};
}

constexpr const char *gelu = "erf", *attention_scale = "head_dim^-1/2";  // the only ones that these models have

// The method that a card names: with the constants that it says, and those of `supplied`, a text form, where it is of
// the same method.
GateChoice gate_from(const std::string& text, const std::string& supplied, const std::string& path) {
  const MethodText written = method_text(text), given = method_text(supplied);
  const Method method = method_named(written.name);
  ConstantValues values = written.values;
  for (const MethodConstant& c : method.constants) {
    const auto more = given.values.find(c.name);
    if (given.name == method.name && more != given.values.end()) {
      const auto [there, is_new] = values.emplace(*more);
      if (!is_new && there->second != more->second && c.affects != Affects::start)
        fail(fmt::format("{}: {} was given, its metadata says {}; leave it out", path, c.text(more->second),
                         method.with(written.values).text()));
    }
    if (c.affects == Affects::function && !values.contains(c.name))
      fail(fmt::format(
          "{0}: its metadata, of an older version, does not say the constant {1} of its method {2}, which decides "
          "what the network computes ({3}); give the value that it was trained with; the standard one is "
          "--gate {2}:{4} in programs, nn::card_of(file, path, {{}}, \"{2}:{4}\") in code",
          path, c.name, method.name, c.meaning, c.text(c.standard)));
  }
  return method.with(values);
}

// The value of a key, which leaves the object: the keys that remain at the end are unknown (refuse_rest).
Json take(Json& object, const char* key) {
  Json value = object.at(key);
  object.erase(key);
  return value;
}

void refuse_rest(const Json& object, const std::string& path) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items())
    keys.push_back(Json(key).dump(-1, ' ', false, Json::error_handler_t::replace));
  check(keys.empty(),
        "{}: its metadata has keys that this version does not know and that may decide what the network computes: {}; "
        "read the file with the version that wrote it, or a later one",
        path, fmt::join(keys, ", "));
}

template <class Options>
void read_common(Json& card, Options& o, const std::string& supplied, const std::string& path) {
  o.image = take(card, "image"), o.channels = take(card, "channels"), o.patch = take(card, "patch");
  o.classes = take(card, "classes"), o.dim = take(card, "dim"), o.depth = take(card, "depth");
  o.heads = take(card, "heads"), o.mlp_ratio = take(card, "mlp_ratio"), o.norm_eps = take(card, "norm_eps");
  o.gate = gate_from(take(card, "gate"), supplied, path);
  // The rest came later; files without it are of models that have it so.
  for (const auto& [key, ours] : {std::pair("gelu", gelu), std::pair("attention_scale", attention_scale)})
    if (card.contains(key))
      if (const std::string given = take(card, key); given != ours)
        fail(fmt::format("expected {} {}, got {}", key, ours, given));
  if (card.contains("drop_path")) {
    Json drop = take(card, "drop_path");
    o.drop_path.rate = take(drop, "rate");
    o.drop_path.schedule = schedule_named(take(drop, "schedule"));
    o.drop_path.form = drop_path_form_named(take(drop, "form"));
    refuse_rest(drop, path);
  }
}

// Sizes of which a model is made at once: a file may say anything.
void check_sizes(const ModelCard& card) {
  std::visit(
      [](const auto& o) {
        for (const std::int64_t size : {o.image, o.channels, o.patch, o.classes, o.dim, o.depth, o.heads})
          check(0 < size && size <= 1 << 20, "expected sizes from 1 to {}, got {}", 1 << 20, size);
        check(o.mlp_ratio <= 1 << 20, "expected an mlp_ratio of at most {}, got {}", 1 << 20, o.mlp_ratio);
        mlp_hidden("card", o.mlp_ratio, o.dim);  // checks
        check(o.image % o.patch == 0 && o.dim % o.heads == 0,
              "expected an image of whole patches and a width of whole heads, got {}/{} and {}/{}", o.image, o.patch,
              o.dim, o.heads);
      },
      card.options);
}

ModelCard card_from(const std::string& text, const std::string& supplied, const std::string& path) {
  Json json = Json::parse(text);
  ModelCard card;
  if (json.is_object() && json.contains("no_card"))
    fail(
        fmt::format("{}: these weights are of a model that a card cannot describe: {}; load them with nn::load_weights "
                    "in the program that makes the model",
                    path, json.at("no_card").get<std::string>()));
  if (const std::string model = take(json, "model"); model == "cait") {
    CaiTOptions o;
    read_common(json, o, supplied, path);
    if (json.contains("init")) o.init = take(json, "init").get<double>();
    o.depth_token_only = take(json, "depth_token_only");
    check(0 < o.depth_token_only && o.depth_token_only <= 1 << 20, "expected a second stage, got {} blocks",
          o.depth_token_only);
    if (!take(json, "talking_heads").get<bool>()) o.attention = make_attention<Attention>;
    card.options = std::move(o);
  } else {
    check(model == "vit", "expected a model vit or cait, got {}", model);
    ViTOptions o;
    read_common(json, o, supplied, path);
    const std::string pool = take(json, "pool");
    check(pool == "token" || pool == "mean", "expected a pool token or mean, got {}", pool);
    o.pool = pool == "token" ? Pool::token : Pool::mean;
    o.token_block = take(json, "token_block");
    card.options = std::move(o);
  }
  card.mean = take(json, "mean").get<std::vector<double>>(), card.std = take(json, "std").get<std::vector<double>>();
  card.class_names = take(json, "class_names").get<std::vector<std::string>>();
  refuse_rest(json, path);
  check_sizes(card);
  const auto of_channels = [&](const std::vector<double>& v) {
    return v.empty() || v.size() == static_cast<std::size_t>(card.channels());
  };
  check(of_channels(card.mean) && of_channels(card.std) && card.mean.empty() == card.std.empty(),
        "expected a mean and a deviation for each of {} channels, got {} and {}", card.channels(), card.mean.size(),
        card.std.size());
  for (const double m : card.mean) check(std::isfinite(m), "expected finite means, got {}", m);
  for (const double s : card.std) check(std::isfinite(s) && s > 0, "expected deviations above 0, got {}", s);
  check(card.class_names.empty() || static_cast<std::int64_t>(card.class_names.size()) == card.classes(),
        "expected {} names of classes, got {}", card.classes(), card.class_names.size());
  return card;
}

// What a card says is made only where the file has it: sizes that it invents would ask for any amount of memory.
void check_fits(const ModelCard& card, const NamedTensors& tensors, const std::string& path) {
  std::visit(
      [&](const auto& o) {
        const auto has = [&](const std::string& name, std::int64_t elements) {
          const auto found = tensors.find(name);
          check(found != tensors.end() && found->second.numel() == elements,
                "{}: expected \"{}\" with {} elements, as {} says, got {}", path, name, elements, "its description",
                found == tensors.end() ? "none" : to_string(found->second.shape()));
        };
        has("patch_embed.proj.weight", o.dim * o.channels * o.patch * o.patch);
        has(fmt::format("blocks.{}.mlp.fc1.weight", o.depth - 1), mlp_hidden("card", o.mlp_ratio, o.dim) * o.dim);
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
    check(tensors.contains(fmt::format("blocks_token_only.{}.norm1.weight", cait->depth_token_only - 1)),
          "{}: expected {} blocks of class attention", path, cait->depth_token_only);
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

const Method& method_of(const ModelCard& card) {
  return std::visit([](const auto& o) -> const Method& { return *o.gate; }, card.options);
}

// Whether the attention of stage 1 is TalkingHeadsAttention. It is made at the model's sizes, as a factory may refuse
// others. A factory that fails even so asks for options of the model that are not known here; its attention is one of
// the caller's own.
bool has_talking_heads(const CaiTOptions& o) {
  try {
    const auto attention = o.attention({.dim = o.dim, .heads = o.heads});
    return dynamic_cast<const TalkingHeadsAttention*>(attention.get()) != nullptr;
  } catch (const std::exception&) {
    return false;
  }
}

// A whole number as an integer, as versions wrote and read it that knew no other ratios of the MLPs.
Json number_of(double x) {
  return x == std::floor(x) && std::abs(x) < 0x1p53 ? Json(static_cast<std::int64_t>(x)) : Json(x);
}

// Sizes, and what decides the function.
Json fields_of(const ModelCard& card) {
  Json json = std::visit(
      [](const auto& o) -> Json {
        return {{"model", ""},
                {"image", o.image},
                {"channels", o.channels},
                {"patch", o.patch},
                {"classes", o.classes},
                {"dim", o.dim},
                {"depth", o.depth},
                {"heads", o.heads},
                {"mlp_ratio", number_of(o.mlp_ratio)},
                {"norm_eps", o.norm_eps},
                {"gate", o.gate->text()},
                {"gelu", gelu},
                {"attention_scale", attention_scale}};
      },
      card.options);
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) {
    json["model"] = "vit";
    json["pool"] = vit->pool == Pool::token ? "token" : "mean";
    json["token_block"] = vit->token_block;
  } else {
    const auto& cait = std::get<CaiTOptions>(card.options);
    json["model"] = "cait";
    json["depth_token_only"] = cait.depth_token_only;
    json["talking_heads"] = has_talking_heads(cait);
  }
  std::visit(
      [&](const auto& o) {  // the other form is the identity in evaluation
        if (o.drop_path.form == DropPathForm::original && o.drop_path.rate > 0)
          json["drop_path"] = {
              {"rate", o.drop_path.rate}, {"schedule", name(o.drop_path.schedule)}, {"form", name(o.drop_path.form)}};
      },
      card.options);
  return json;
}

// A network of the same function on images of 2 x 2 patches, at `head` channels a head: depth, heads and all else are
// the card's.
std::unique_ptr<Classifier> small_model(ModelCard card, std::int64_t head) {
  std::visit(
      [&](auto& o) {
        o.image = 2, o.channels = 1, o.patch = 1, o.classes = 3, o.dim = o.heads * std::min(head, o.dim / o.heads);
        o.drop_key = {}, o.attention_dropout = 0, o.drop_head = {};
      },
      card.options);
  auto model = make_model(card);
  model->eval();
  return model;
}

// Largest difference of the logits of two networks with the same weights, to the largest logit. If they do not have the
// same parameters, there is no value. The parameters of `b` alone must be among `added`, by our names, and have these
// values. If a logit is finite in neither network, the difference is not known, and it throws.
std::optional<double> difference_at(const ModelCard& a, const ModelCard& b, const NamedTensors& added,
                                    std::int64_t head) {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::cpu});
  const PrecisionScope precision(Precision::f32);
  const NoGrad no_grad;
  const auto first = small_model(a, head), second = small_model(b, head);
  // Off their initial values, so that no zero and no one hides a term; little, so that deep networks stay finite.
  for (const Parameter& p : first->parameters()) {
    const double scale = 0.1 / std::sqrt(p.value.shape().rank() > 1 ? static_cast<double>(p.value.dim(-1)) : 1);
    copy_into((p.value.detach() + random_normal(p.value.shape(), 1, p.name) * scale).array(), p.value.array());
  }
  NamedTensors from = weights(*first);
  const NamedTensors to = weights(*second);
  for (const auto& [name, target] : to) {
    const auto value = added.find(name);
    if (value == added.end() || from.contains(name)) continue;
    const std::vector<double> all = value->second.values();
    const bool even = std::ranges::all_of(all, [&](double x) { return x == all.front(); });
    from[name] = even                                      ? full(target.shape(), all.front())
                 : value->second.shape() == target.shape() ? tensor(all, target.shape())
                                                           : target;
  }
  if (from.size() != to.size()) return std::nullopt;
  for (const auto& [name, target] : to)
    if (!from.contains(name) || from.at(name).shape() != target.shape()) return std::nullopt;
  assign(to, from, "[difference]");
  const Tensor images = random_normal({2, 1, 2, 2}, 1, "images");
  const std::vector<double> x = (*first)(images).values(), y = (*second)(images).values();
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    check(std::isfinite(x[i]) || std::isfinite(y[i]), "both networks give a logit that is not finite");
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return std::numeric_limits<double>::infinity();
    gap = std::max(gap, std::abs(x[i] - y[i]));
    size = std::max(size, std::abs(x[i]));
  }
  return gap == 0 ? 0 : gap / size;
}

std::optional<double> difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added = {}) {
  try {
    return difference_at(a, b, added, 4);
  } catch (const std::exception&) {  // a gate or an attention of one's own may ask for its width, a small mlp_ratio for
                                     // a hidden unit
    return difference_at(a, b, added, std::numeric_limits<std::int64_t>::max());
  }
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

// A gate's parameter that the file does not have.
struct NewGate {
  std::string name;  // in the file
  Parameter parameter;
  Tensor start = {};  // its value after loading
};

// Sets `start`: `factor` for factors of branch or skip (Gate::scales), the initial value for other parameters.
void choose_starts(std::vector<NewGate>& new_gates, Classifier& model, double factor) {
  Tensors factors;
  model.each_module([&](Module& module) {
    if (const auto* gate = dynamic_cast<const Gate*>(&module))
      for (const Tensor& scale : gate->scales()) factors.push_back(scale);
  });
  for (NewGate& gate : new_gates) {
    const Tensor& value = gate.parameter.value;
    const bool is_factor = std::ranges::any_of(
        factors, [&](const Tensor& scale) { return scale.array().shares_buffer_with(value.array()); });
    gate.start =
        is_factor ? full(value.shape(), factor, {.dtype = value.dtype(), .device = value.device()}) : value.detach();
  }
}

std::int64_t heads_of(const ModelCard& card) {
  return std::visit([](const auto& o) { return o.heads; }, card.options);
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// The method with the constants on which trained weights depend.
std::string text_without_start(const Method& method) {
  std::string text = method.name;
  for (const MethodConstant& c : method.constants)
    if (c.affects != Affects::start) text += ":" + c.text(method.value(c.name));
  return text;
}

// The heads of a file without a card, by timm's rule, which talking heads need not; no value if it gives none.
std::optional<std::int64_t> heads_by_rule(const TensorFile& file, const std::string& path) {
  try {
    return heads_of(card_of(file, path));
  } catch (const Error&) {
    return std::nullopt;
  }
}

const char* or_attention(const ModelCard& card) {
  return std::holds_alternative<CaiTOptions>(card.options)
             ? ", or its attention is neither Attention nor TalkingHeadsAttention"
             : "";
}

struct Comparison {
  std::optional<bool> same;
  std::vector<std::string> reasons;
};

Comparison not_known(std::string reason) { return {std::nullopt, {std::move(reason)}}; }

// Whether a model that `here` describes, once loaded, computes what the file's network computed, except for its head
// and its positions.
Comparison compare(const ModelCard& here, const TensorFile& file, const std::string& path,
                   const std::vector<NewGate>& new_gates, const std::string& method) {
  constexpr double rounding = 1e-9;
  const bool described = file.metadata.contains(metadata_key);
  ModelCard there;
  try {
    there = card_of(file, path, heads_of(here), method);
  } catch (const Error& e) {
    return not_known(described ? e.what() : "the file has no card and is not read as timm's");
  }
  if (!described)
    if (const auto heads = heads_by_rule(file, path); heads != heads_of(here))
      return not_known(fmt::format("the file does not say its heads: timm's rule gives {}, the model has {}",
                                   heads ? std::to_string(*heads) : "none for this width", heads_of(here)));
  NamedTensors added;
  for (const NewGate& gate : new_gates) added[gate.parameter.name] = gate.start;
  const bool alike = there.options.index() == here.options.index() && heads_of(there) == heads_of(here);
  std::optional<double> gap, gap_of_gates;
  try {
    if (alike) gap = difference(there, here, added);
    if (gap && *gap <= rounding) return {true, {}};
    if (!described && !gap) return not_known("the file has no card, and parameters that timm's models have not");
    if (!new_gates.empty()) {  // the file's network with the new gates alone
      ModelCard gated = there;
      const GateChoice gate = std::visit([](const auto& o) { return o.gate; }, here.options);
      std::visit([&](auto& o) { o.gate = gate; }, gated.options);
      gap_of_gates = difference(there, gated, added);
    }
  } catch (const std::exception& e) {
    return not_known(fmt::format("the two cannot be compared: {}", e.what()));
  }
  Comparison result{false, {}};
  const auto blame = [&](const std::string& reason) { result.reasons.push_back(reason); };
  Json ours = fields_of(here), theirs = fields_of(there);
  for (const char* size : {"image", "classes"}) ours.erase(size), theirs.erase(size);
  ours["gate"] = text_without_start(method_of(here)), theirs["gate"] = text_without_start(method_of(there));
  if (gap_of_gates) {
    if (*gap_of_gates > rounding)
      blame(fmt::format("gates are new: {} starts at {:g} (logits of a small network move by {:.1g} of the largest)",
                        new_gates.front().name, new_gates.front().start.values().front(), *gap_of_gates));
    ours.erase("gate"), theirs.erase("gate");
  }
  for (const auto& [key, value] : ours.items()) {
    if (theirs.contains(key) && theirs[key] == value) continue;
    const std::string other = !theirs.contains(key) ? "not in the file"
                              : !described && key == "norm_eps"
                                  ? fmt::format("timm's {}, as the file does not say its own", text_of(theirs[key]))
                                  : text_of(theirs[key]) + " in the file";
    blame(fmt::format("{} is {} here and {}", key, text_of(value), other));
  }
  for (const auto& [key, value] : theirs.items())
    if (!ours.contains(key)) blame(fmt::format("{} is {} in the file and not here", key, text_of(value)));
  if (result.reasons.empty())
    blame(fmt::format("the method {} here is not the table's{}", method_of(here).label(), or_attention(here)));
  return result;
}

// The advice for weights that do not fit, if their names do not give it: the constants that the file's metadata lacks
// and that decide which parameters there are, or else the method that the file is of.
std::string advice_on_method(const Classifier& model, const TensorFile& file, const std::string& path,
                             const std::string& message) {
  const auto written = file.metadata.find(metadata_key);
  if (written == file.metadata.end()) return "";
  try {
    const MethodText text = method_text(Json::parse(written->second).at("gate").get<std::string>());
    const ModelCard here = *card_of(model);
    const Method& ours = method_of(here);
    std::vector<std::string> names, values;
    std::string option = text.name;
    for (const MethodConstant& c : ours.constants)
      if (ours.name == text.name && c.affects == Affects::parameters && !text.values.contains(c.name)) {
        names.push_back(c.name), values.push_back(c.text(ours.value(c.name)));
        option += fmt::format(":{}=VALUE", c.name);
      }
    if (!names.empty())
      return fmt::format(
          "; its metadata, of an older version, does not say {} of its method {}, and the model has {}; if the file is "
          "of another value, give it: --gate {} in programs, nn::card_of(file, path, {{}}, \"{}\") in code",
          fmt::join(names, ", "), text.name, fmt::join(values, ", "), option, option);
    if (message.find("--gate") != std::string::npos) return "";
    const ModelCard there = card_of(file, path);
    const std::string label = method_of(there).label();
    if (label == ours.label()) return "";
    return fmt::format(
        "; the file is of the method {0}, the model of {1}: make it with {{.gate = \"{0}\"}} (--gate {0})", label,
        ours.label());
  } catch (const std::exception&) {
    return "";
  }
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
  if (const auto* cait = dynamic_cast<const CaiT*>(&model)) return ModelCard{.options = cait->options()};
  return std::nullopt;
}

std::string json_of(const ModelCard& card) {
  Json json = fields_of(card);
  if (const auto* cait = std::get_if<CaiTOptions>(&card.options); cait && cait->init) json["init"] = *cait->init;
  json["mean"] = card.mean, json["std"] = card.std, json["class_names"] = card.class_names;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::map<std::string, std::string> metadata_of(const ModelCard& card) {
  const std::string text = json_of(card), gate = method_of(card).label();
  const char* const remedy =
      "register the method under a name of its own with its constants declared (nn::register_method, "
      "Method::constants), in programs that read the "
      "file as well, or save the weights without a card (nn::metadata_without_card)";
  std::optional<double> gap;
  try {
    gap = difference(card, card_from(text, "", "metadata"));
  } catch (const std::exception& e) {
    throw Error(fmt::format(
        "[metadata_of] expected a model that can be made again from a card, got one of the method \"{}\": {}; {}", gate,
        e.what(), remedy));
  }
  check(gap == 0.0,
        "[metadata_of] expected a model that can be made again from a card, got one that reads back as another "
        "network: its method \"{}\" is not the "
        "table's{}; {}",
        gate, or_attention(card), remedy);
  return {{metadata_key, text}};
}

std::map<std::string, std::string> metadata_without_card(const std::string& reason) {
  return {{metadata_key, Json{{"no_card", reason}}.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

ModelCard card_of(const TensorFile& file, const std::string& path, std::optional<std::int64_t> heads,
                  const std::string& method) {
  const auto written = file.metadata.find(metadata_key);
  const auto begins_with_path = [&](const Error& e) { return std::string(e.what()).starts_with(path + ": "); };
  try {
    if (written != file.metadata.end()) {
      ModelCard card = card_from(written->second, method, path);
      check_fits(card, file.tensors, path);
      return card;
    }
  } catch (const Json::exception& e) {
    throw Error(fmt::format("{}: its metadata \"{}\" is not what Plumb writes: {}", path, metadata_key, e.what()));
  } catch (const Error& e) {
    if (begins_with_path(e)) throw;
    throw Error(fmt::format("{}: its metadata \"{}\" describes no model: {}", path, metadata_key, e.what()));
  }
  try {
    ModelCard card = card_of_timm(file.tensors, path, heads);
    check_sizes(card);
    check_fits(card, file.tensors, path);
    return card;
  } catch (const Error& e) {
    const std::string remedy = remedy_for_names(file.tensors);
    throw Error(
        fmt::format("{}{}{}", begins_with_path(e) ? "" : path + ": ", e.what(), remedy.empty() ? "" : "; " + remedy));
  }
}

std::unique_ptr<Classifier> make_model(const ModelCard& card) {
  if (const auto* vit = std::get_if<ViTOptions>(&card.options)) return std::make_unique<ViT>(*vit);
  return std::make_unique<CaiT>(std::get<CaiTOptions>(card.options));
}

Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side) {
  check(positions.shape().rank() == 3 && positions.dim(0) == 1 && prefix >= 0 && positions.dim(1) > prefix && side > 0,
        "[resized_positions] expected positions [1, {} + a a, D] and a side above 0, got {} and {}", prefix,
        positions.shape(), side);
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
      for (std::int64_t i = 0; i < side * D; ++i)
        all[at((prefix + y * side) * D + i)] += weights[at(y * from + k)] * across[at(k * side * D + i)];
  return tensor(all, {1, prefix + side * side, D}, {.dtype = positions.dtype(), .device = positions.device()});
}

std::string Adapted::text() const {
  const std::string why = reasons.empty() ? "" : fmt::format(": {}", fmt::join(reasons, "; "));
  return !same_function   ? "whether it computes what the file's network did is not known" + why
         : *same_function ? "it computes what the file's network did"
                          : "it does not compute what the file's network did" + why;
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
  if (adaptation.new_head)
    for (const char* name : {"head.weight", "head.bias"})
      if (from.contains(name) && to.contains(name) && from.at(name).shape() != to.at(name).shape()) {
        from.erase(name);
        adapted.as_initialised.push_back(name);
      }
  if (!adapted.as_initialised.empty()) adapted.reasons.push_back("the head is new");
  if (adapted.positions_from)
    adapted.reasons.push_back(
        fmt::format("positions of {0} x {0} patches are resized to {1} x {1}", *adapted.positions_from, target.side));
  std::vector<NewGate> new_gates;
  if (adaptation.new_gates)
    for (const Parameter& p : model.parameters())
      if (const std::string name = name_under(map, p.name); p.role == Role::gate && !from.contains(name)) {
        new_gates.push_back({.name = name, .parameter = p});
        adapted.as_initialised.push_back(name);
      }
  const bool lacks = std::ranges::any_of(to, [&](const auto& entry) {
    return !from.contains(entry.first) &&
           std::ranges::find(adapted.as_initialised, entry.first) == adapted.as_initialised.end();
  });
  choose_starts(new_gates, model, adaptation.gate_start.value_or(1));
  Comparison compared = compare(*card_of(model), file, path, new_gates, adaptation.method);
  adapted.same_function = adapted.reasons.empty() ? compared.same : false;
  std::ranges::move(compared.reasons, std::back_inserter(adapted.reasons));
  try {
    assign(to, from, fmt::format("[load_pretrained] {}", path), {.allow_missing = !lacks});
  } catch (const Error& e) {
    throw Error(std::string(e.what()) + advice_on_method(model, file, path, e.what()));
  }
  // Nothing throws from here on: the model has changed.
  for (const NewGate& gate : new_gates) copy_into(gate.start.array(), gate.parameter.value.array());
  return adapted;
}

}  // namespace plumb::nn
