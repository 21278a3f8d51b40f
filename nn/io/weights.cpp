#include "nn/io/weights.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "nn/io/safetensors.h"

namespace plumb::nn {
namespace {

std::vector<std::string> segments_of(const std::string& name) {
  std::vector<std::string> segments(1);
  for (const char c : name)
    if (c == '.')
      segments.emplace_back();
    else
      segments.back() += c;
  return segments;
}

// Returns the other library's name for the name in Plumb if the rule matches.
std::optional<std::string> renamed(const KeyRule& rule, const std::string& name) {
  const std::vector<std::string> pattern = segments_of(rule.ours), given = segments_of(name);
  if (pattern.size() != given.size()) return std::nullopt;
  std::vector<std::string> stars;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (pattern[i] == "*")
      stars.push_back(given[i]);
    else if (pattern[i] != given[i])
      return std::nullopt;
  }
  std::vector<std::string> theirs = segments_of(rule.theirs);
  std::size_t next = 0;
  for (std::string& segment : theirs)
    if (segment == "*") segment = stars[next++];
  return fmt::format("{}", fmt::join(theirs, "."));
}

void check_rule(const KeyRule& rule) {
  const auto stars = [](const std::string& name) { return std::ranges::count(segments_of(name), "*"); };
  check(stars(rule.ours) == stars(rule.theirs),
        "[weights] expected the same number of * on both sides of a rule, got \"{}\" and \"{}\"", rule.ours,
        rule.theirs);
}

KeyRule patch_projection(std::int64_t channels) {
  check(channels > 0, "[weights] expected images with at least one channel, got {}", channels);
  return {"patch_embed.proj.weight", "patch_embed.proj.weight", [channels](const Shape& ours) {
            const auto p = std::lround(std::sqrt(static_cast<double>(ours[-1]) / static_cast<double>(channels)));
            check(channels * p * p == ours[-1],
                  "[weights] expected a patch projection [dim, {} p p] for {} channels, got {}", channels, channels,
                  ours);
            return Shape{ours[0], channels, p, p};
          }};
}

// Returns the call that makes the key map if the names look like timm's names and not like Plumb's names; "" otherwise.
const char* names_of_timm(const NamedTensors& from) {
  const auto any = [&](const char* part) {
    return std::ranges::any_of(from, [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
  };
  if (any(".gamma_1")) return "nn::timm_cait()";
  const auto patches = from.find("patch_embed.proj.weight");
  return any(".ls1.gamma") || (patches != from.end() && patches->second.shape().rank() == 4) ? "nn::timm_vit()" : "";
}

}  // namespace

std::string name_under(const KeyMap& map, const std::string& ours) {
  for (const KeyRule& rule : map)
    if (const auto theirs = renamed(rule, ours)) return *theirs;
  return ours;
}

KeyMap timm_vit(std::int64_t channels) {
  return {{"blocks.*.gate1.gamma", "blocks.*.ls1.gamma"},
          {"blocks.*.gate2.gamma", "blocks.*.ls2.gamma"},
          patch_projection(channels)};
}

KeyMap timm_cait(std::int64_t channels) {
  return {{"blocks.*.gate1.gamma", "blocks.*.gamma_1"},
          {"blocks.*.gate2.gamma", "blocks.*.gamma_2"},
          {"blocks_token_only.*.gate1.gamma", "blocks_token_only.*.gamma_1"},
          {"blocks_token_only.*.gate2.gamma", "blocks_token_only.*.gamma_2"},
          patch_projection(channels)};
}

KeyMap facebook_names() {
  KeyMap map{{"query_embed", "query_embed.weight"}};
  for (const char* stack : {"encoder", "decoder"}) {
    const auto rule = [&](const std::string& ours, const std::string& theirs) {
      map.push_back(
          {fmt::format("{}.blocks.*.{}", stack, ours), fmt::format("transformer.{}.layers.*.{}", stack, theirs)});
    };
    for (const char* part : {"weight", "bias"}) {
      for (const auto& [ours, theirs] : {std::pair("attn", "self_attn"), {"cross", "multihead_attn"}}) {
        rule(fmt::format("{}.qkv.{}", ours, part), fmt::format("{}.in_proj_{}", theirs, part));
        rule(fmt::format("{}.proj.{}", ours, part), fmt::format("{}.out_proj.{}", theirs, part));
      }
      for (const auto& [ours, theirs] : {std::pair("mlp.fc1", "linear1"),
                                         {"mlp.fc2", "linear2"},
                                         {"norm1", "norm1"},
                                         {"norm2", "norm2"},
                                         {"norm3", "norm3"}})
        rule(fmt::format("{}.{}", ours, part), fmt::format("{}.{}", theirs, part));
      map.push_back({fmt::format("{}.norm.{}", stack, part), fmt::format("transformer.{}.norm.{}", stack, part)});
    }
  }
  return map;
}

NamedTensors weights(const Module& module, const KeyMap& map) {
  for (const KeyRule& rule : map) check_rule(rule);
  NamedTensors all;
  for (const Parameter& p : module.parameters()) {
    std::string name = p.name;
    Array value = p.value.array();
    for (const KeyRule& rule : map)
      if (const auto theirs = renamed(rule, p.name)) {
        name = *theirs;
        if (rule.shape) value = value.reshaped(rule.shape(value.shape()));
        break;
      }
    check(all.emplace(name, Tensor(value)).second,
          "[weights] expected one parameter of {} for \"{}\", got a second one: {}", *module.path(), name, p.name);
  }
  return all;
}

void save_weights(const Module& module, const std::filesystem::path& path, const KeyMap& map,
                  const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, {.tensors = weights(module, map), .metadata = metadata});
}

Leftovers load_weights(Module& module, const std::filesystem::path& path, const KeyMap& map, Strictness strictness) {
  const NamedTensors to = weights(module, map);
  const TensorFile file = read_safetensors(path);
  const NamedTensors& from = file.tensors;
  const std::string what = fmt::format("[load_weights] {} into {}", path.string(), *module.path());
  check_not_skipped(to, file, what);
  try {
    Leftovers left = assign(to, from, what, strictness);
    for (const auto& [name, dtype] : file.skipped) left.unexpected.push_back(name);
    std::ranges::sort(left.unexpected);
    return left;
  } catch (const Error& e) {
    const char* const names = map.empty() ? names_of_timm(from) : "";
    if (*names == '\0') throw;
    throw Error(fmt::format("{}; if these are timm's names, pass {}", e.what(), names));
  }
}

}  // namespace plumb::nn
