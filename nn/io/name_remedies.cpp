#include "nn/io/name_remedies.h"

#include <algorithm>

namespace plumb::nn {
namespace {

bool any_name(const auto& tensors, const auto& fits_name) {
  return std::ranges::any_of(tensors, [&](const auto& entry) { return fits_name(entry.first); });
}

bool has_part(const std::string& name, const std::string& part) {
  return ("." + name).find("." + part) != std::string::npos;
}

// Returns the part "C.N." of a name such as "blocks.C.N.norm1.weight", or "" if the name has no such part.
std::string chunk_of(const std::string& name) {
  const auto digits = [&](std::size_t at) {
    const std::size_t end = name.find_first_not_of("0123456789", at);
    return end != std::string::npos && end > at && name[end] == '.' ? end + 1 : std::string::npos;
  };
  const std::size_t blocks = name.find("blocks.");
  if (blocks == std::string::npos || (blocks > 0 && name[blocks - 1] != '.')) return "";
  const std::size_t first = blocks + 7, second = digits(first),
                    end = second == std::string::npos ? second : digits(second);
  return end == std::string::npos ? "" : name.substr(first, end - first);
}

// Returns whether the name is that of a LayerScale gamma in Plumb, or in timm's VisionTransformer or Cait. Gammas in
// the second stage of a CaiT do not count, because a CaiT has these gammas with every method.
bool is_layerscale(const std::string& name) {
  if (has_part(name, "blocks_token_only.")) return false;
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "gamma_1" || last == "gamma_2" ||
         (last == "gamma" && (has_part(name, "gate1.gamma") || has_part(name, "gate2.gamma") ||
                              has_part(name, "ls1.gamma") || has_part(name, "ls2.gamma")));
}

std::string remedy_for_gates(const auto& to, const auto& from) {
  const bool wanted = any_name(to, is_layerscale), given = any_name(from, is_layerscale);
  if (given && !wanted)
    return "these weights have LayerScale, but the model does not: make it with {.method = \"layerscale\"} (--gate "
           "layerscale)";
  if (wanted && !given && any_name(from, [](const std::string& name) { return has_part(name, "blocks."); }))
    return "the model has LayerScale, but these weights do not: make the model with the method of the weights, such as "
           "{.method = \"pre\"} (--gate pre) if they have no gates, or load them with new gates (nn::load_pretrained, "
           "{.new_gates = true}; --fine-tune)";
  return "";
}

// Returns the first segment of the names if all names begin with this segment and some names match without the segment.
// An example is "model." in a file of a model that wraps another model.
std::string superfluous_prefix(const auto& to, const auto& from) {
  if (from.empty()) return "";
  const std::string& first = from.begin()->first;
  const std::string prefix = first.substr(0, first.find('.') + 1);
  const bool all =
      !prefix.empty() && std::ranges::all_of(from, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  const bool wanted = std::ranges::any_of(from, [&](const auto& entry) {
    return to.contains(entry.first.substr(std::min(prefix.size(), entry.first.size())));
  });
  return all && wanted ? prefix : "";
}

}  // namespace

std::string remedy_for_names(const std::map<std::string, Tensor>& from) {
  const auto begins = [&](const std::string& prefix) {
    return any_name(from, [&](const std::string& name) { return name.starts_with(prefix); });
  };
  for (const char* average : {"model_ema.", "state_dict_ema."})
    if (begins(average))
      return std::ranges::all_of(from, [&](const auto& entry) { return entry.first.starts_with(average); })
                 ? fmt::format("names begin with \"{}\", the prefix of averaged weights: remove it", average)
                 : fmt::format(
                       "the file has averaged weights under \"{}\" and other weights: keep only one of the two, "
                       "without the prefix",
                       average);
  std::string wrapped;  // a prefix such as "module._orig_mod.", with its parts in the order of the names in the file
  for (bool more = true; more;) {
    more = false;
    for (const char* prefix : {"module.", "_orig_mod."})
      if (begins(wrapped + prefix)) wrapped += prefix, more = true;
  }
  if (!wrapped.empty())
    return fmt::format("names begin with \"{}\", a prefix of {}: remove it", wrapped,
                       wrapped.starts_with("module.") ? "DistributedDataParallel" : "torch.compile");
  for (const auto& [name, value] : from)
    if (const std::string chunk = chunk_of(name); !chunk.empty()) {
      const std::string block = chunk.substr(chunk.find('.') + 1);
      return fmt::format(
          "the blocks are in chunks, as in DINOv2: rename blocks.{}* to blocks.{}*, and the other blocks likewise",
          chunk, block);
    }
  for (const char* scale : {"ls1.weight", "ls2.weight"})
    if (any_name(from, [&](const std::string& name) { return has_part(name, scale); }))
      return "the file names LayerScale ls1.weight and ls2.weight: rename them to ls1.gamma and ls2.gamma";
  return "";
}

std::string remedy_for_names(const std::map<std::string, Tensor>& to, const std::map<std::string, Tensor>& from) {
  if (const std::string remedy = remedy_for_names(from); !remedy.empty()) return remedy;
  if (const std::string prefix = superfluous_prefix(to, from); !prefix.empty())
    return fmt::format("all names begin with \"{}\": remove it", prefix);
  return remedy_for_gates(to, from);
}

}  // namespace plumb::nn
