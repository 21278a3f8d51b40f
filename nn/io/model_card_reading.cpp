// Reads model cards from the metadata of files, and checks the metadata against the weights.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/one_line.h"
#include "nn/gates/method_text.h"
#include "nn/io/model_card_parts.h"
#include "nn/io/name_remedies.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

// Returns the method that a card names, with the constants in the card. If the text form `supplied` names the same
// method, constants that the card lacks come from `supplied`.
MethodChoice method_from(const std::string& text, const std::string& supplied, const std::string& path) {
  const MethodText written = method_text(text), given = method_text(supplied);
  const Method method = method_named(written.name);
  ConstantValues values = written.values;
  for (const MethodConstant& c : method.constants) {
    const auto more = given.values.find(c.name);
    if (given.name == method.name && more != given.values.end()) {
      const auto [there, is_new] = values.emplace(*more);
      if (!is_new && there->second != more->second && c.affects != Affects::start)
        fail(fmt::format("{}: {} was given, but its metadata says {}; do not give the constant", path,
                         c.text(more->second), method.with(written.values).text()));
    }
    if (c.affects == Affects::function && !values.contains(c.name))
      fail(fmt::format(
          "{0}: its metadata, from an older version, lacks the constant {1} of its method {2}, which decides "
          "what the network computes ({3}); give the value that it was trained with; the standard value is "
          "--gate {2}:{4} in programs, nn::card_of(file, path, {{}}, \"{2}:{4}\") in code",
          path, c.name, method.name, c.meaning, c.text(c.standard)));
  }
  return method.with(values);
}

// The limits of images in a card. A file has no weights for pixels, so that its size does not limit images.
constexpr std::int64_t largest_image = 4096, most_patches = 1 << 16;

// Checks the sizes, which are above 0, before a model of these sizes is made, because a file may contain any number.
void check_sizes(const ModelCard& card) {
  std::visit(
      [](const auto& o) {
        check(o.mlp_ratio <= largest_in_card, "expected an mlp_ratio of at most {}, got {}", largest_in_card,
              o.mlp_ratio);
        mlp_hidden("card", o.mlp_ratio, o.dim);  // throws Error for an invalid mlp_ratio
        check(o.image % o.patch == 0 && o.dim % o.heads == 0,
              "expected an image of whole patches and a width of whole heads, got {}/{} and {}/{}", o.image, o.patch,
              o.dim, o.heads);
        const std::int64_t side = o.image / o.patch;
        check(o.image <= largest_image && side * side <= most_patches,
              "expected images of at most {0} x {0} pixels and {1} patches, got {2} x {2} and {3}", largest_image,
              most_patches, o.image, side * side);
      },
      card.options);
  if (const auto* vit = std::get_if<ViTOptions>(&card.options))
    check(0 <= vit->token_block && vit->token_block < vit->depth, "expected a token_block below the depth {}, got {}",
          vit->depth, vit->token_block);
  if (const auto* cait = std::get_if<CaiTOptions>(&card.options))
    check(0 < cait->depth_token_only && cait->depth_token_only <= largest_in_card,
          "expected a depth_token_only from 1 to {} blocks, got {}", largest_in_card, cait->depth_token_only);
}

// Returns the end of an error about a tensor that the file lacks, if the file has tensors that were not read.
std::string or_skipped(const TensorFile& file) {
  return file.skipped.empty() ? ""
                              : "; tensors of dtypes that Plumb does not read were left out: " + skipped_text(file);
}

// Returns the number of parameters of a model whose blocks are as small as logit_difference() makes them. One block is
// made, because the blocks of a method have the same parameters.
std::int64_t least_parameters(const ModelCard& card) {
  ModelCard one = card;
  std::visit([](auto& o) { o.depth = 1; }, one.options);
  if (auto* vit = std::get_if<ViTOptions>(&one.options)) vit->token_block = 0;
  if (auto* cait = std::get_if<CaiTOptions>(&one.options)) cait->depth_token_only = 1;
  const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
  const std::int64_t depth = std::visit([](const auto& o) { return o.depth; }, card.options);
  try {
    return depth * small_model(one, 4)->parameter_count();
  } catch (const std::exception&) {  // some methods and MLP ratios need the full width
    return depth * small_model(one, largest_in_card)->parameter_count();
  }
}

// Checks that the file has weights of the sizes in the card, and each block of the card. Without this check, a card in
// a small file could cause an allocation of any size.
void check_fits(const ModelCard& card, const NamedTensors& tensors, const std::string& path) {
  std::visit(
      [&](const auto& o) {
        const auto has = [&](const std::string& name, std::initializer_list<std::int64_t> extents) {
          check_holds(tensors, name, extents, path + ": ");
        };
        const std::int64_t hidden = mlp_hidden("card", o.mlp_ratio, o.dim);
        has("patch_embed.proj.weight", {o.dim, o.channels, o.patch, o.patch});
        has("head.weight", {o.classes, o.dim});
        const auto has_block = [&](const std::string& block, std::initializer_list<const char*> square) {
          for (const char* name : square) has(block + name, {o.dim, o.dim});
          has(block + "mlp.fc1.weight", {hidden, o.dim}), has(block + "mlp.fc2.weight", {hidden, o.dim});
        };
        for (std::int64_t i = 0; i < o.depth; ++i) {
          const std::string block = fmt::format("blocks.{}.", i);
          has(block + "attn.qkv.weight", {3, o.dim, o.dim});
          has_block(block, {"attn.proj.weight"});
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(o)>, CaiTOptions>)
          for (std::int64_t i = 0; i < o.depth_token_only; ++i)
            has_block(fmt::format("blocks_token_only.{}.", i),
                      {"attn.q.weight", "attn.k.weight", "attn.v.weight", "attn.proj.weight"});
        const auto positions = tensors.find("pos_embed");
        const std::int64_t side = o.image / o.patch;
        check(positions != tensors.end() && positions->second.shape().rank() == 3 && positions->second.dim(0) == 1 &&
                  positions->second.dim(2) == o.dim && std::abs(positions->second.dim(1) - side * side) <= 1,
              "{}: expected positions of {} patches, got {}", path, side * side,
              positions == tensors.end() ? "none" : to_string(positions->second.shape()));
      },
      card.options);
  check_parameters(least_parameters(card), tensors, path + ": ");
}

}  // namespace

void check_holds(const NamedTensors& tensors, const std::string& name, std::initializer_list<std::int64_t> extents,
                 const std::string& what) {
  const auto found = tensors.find(name);
  std::int64_t elements = 1;
  const bool fits = std::ranges::none_of(
      extents, [&](std::int64_t extent) { return __builtin_mul_overflow(elements, extent, &elements); });
  check(fits && found != tensors.end() && found->second.numel() == elements,
        "{}expected \"{}\" with {} elements, as its description says, got {}", what, name, fmt::join(extents, " x "),
        found == tensors.end() ? "none" : to_string(found->second.shape()));
}

void check_data(const std::vector<double>& mean, const std::vector<double>& std,
                const std::vector<std::string>& class_names, std::int64_t channels, std::int64_t classes) {
  const auto of_channels = [&](const std::vector<double>& v) { return v.empty() || std::ssize(v) == channels; };
  check(of_channels(mean) && of_channels(std) && mean.empty() == std.empty(),
        "expected a mean and a standard deviation for each of {} channels, got {} and {}", channels, mean.size(),
        std.size());
  for (const double m : mean) check(std::isfinite(m), "expected finite means, got {}", m);
  for (const double s : std) check(std::isfinite(s) && s > 0, "expected standard deviations above 0, got {}", s);
  for (const std::string& name : class_names)
    check(std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
          "expected names of classes without control characters, got \"{}\"", printable(name));
  check(class_names.empty() || std::ssize(class_names) == classes, "expected names of {} classes, got {}", classes,
        class_names.size());
}

void check_parameters(std::int64_t parameters, const NamedTensors& tensors, const std::string& what) {
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tensors) elements += tensor.numel();
  check(parameters / most_parameters_per_element <= elements,
        "{}expected a description of a network of this size, got {} elements for at least {} parameters", what,
        elements, parameters);
}

ModelCard card_from(const std::string& text, const std::string& supplied, const std::string& path) {
  Json json = Json::parse(shallow_json(text, metadata_key));
  ModelCard card;
  if (json.is_object() && json.contains("no_card"))
    fail(
        fmt::format("{}: these weights are of a model that a card cannot describe: {}; load them with nn::load_weights "
                    "in the program that makes the model",
                    path, json.at("no_card").get<std::string>()));
  const std::string model = json.at("model");
  check(model == "vit" || model == "cait", "expected a model vit or cait, got {}", model);
  if (model == "cait") card.options = CaiTOptions();
  CardReader<Json> reader(std::move(json), path + ": its metadata",
                          [&](const std::string& gate) { return method_from(gate, supplied, path); });
  std::visit([&](auto& o) { fields(reader, o); }, card.options);
  data_fields(reader, card);
  reader.finish();
  check_sizes(card);
  check_data(card.mean, card.std, card.class_names, card.channels(), card.classes());
  return card;
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
    throw Error(fmt::format("{}: its metadata \"{}\" is not in Plumb's format: {}", path, metadata_key, e.what()));
  } catch (const Error& e) {
    if (begins_with_path(e)) throw Error(e.what() + or_skipped(file));
    throw Error(fmt::format("{}: its metadata \"{}\" describes no model: {}", path, metadata_key, e.what()));
  }
  try {
    ModelCard card = card_from(json_of(card_of_timm(file.tensors, path, heads)), "", path);  // checks the sizes
    check_fits(card, file.tensors, path);
    return card;
  } catch (const Error& e) {
    const std::string remedy = remedy_for_names(file.tensors);
    throw Error(fmt::format("{}{}{}{}", begins_with_path(e) ? "" : path + ": ", e.what(),
                            remedy.empty() ? "" : "; " + remedy, or_skipped(file)));
  }
}

}  // namespace plumb::nn
