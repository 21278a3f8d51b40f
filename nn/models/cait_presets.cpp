#include "nn/models/cait_presets.h"

#include <algorithm>

#include "core/nearest.h"

namespace plumb::nn {
namespace {

const std::string authors = "facebookresearch/deit, cait_models.py", script = "facebookresearch/deit, main.py",
                  timm = "timm 1.0.31, cait.py";

struct Size {
  std::string name;
  double dim, heads;
  std::optional<double> drop_path[3];  // published rates for 24, 36 and 48 blocks; empty if not published
};
const std::vector<Size> sizes{{"xxs", 192, 4, {0.05, 0.1, {}}},
                              {"xs", 288, 6, {0.05, 0.1, {}}},
                              {"s", 384, 8, {0.1, 0.2, 0.3}},
                              {"m", 768, 16, {0.2, 0.3, 0.4}}};
const std::vector<std::string> released{"xxs24", "xxs36", "xs24", "s24", "s36", "m36", "m48"}, in_timm = released;
const std::vector<std::string> families{"cait-paper", "cait-timm"};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Constant paper_drop_path(const Size& size, std::size_t i) {
  if (size.drop_path[i]) return {*size.drop_path[i], "reported in secondary texts, not verified"};
  return {2 * *size.drop_path[1] - *size.drop_path[0],
          "rule: linear extrapolation from 24 and 36 blocks, which gives the reported rates of S48 and M48"};
}

// The paper gives eps by depth. The authors' XXS36, which timm copies, does not follow this rule of the paper.
Constant paper_init(const std::string& size, std::int64_t depth) {
  const std::string rule = layerscale_init_source(depth);
  return {layerscale_init(depth), size == "xxs36"         ? rule + "; the released model has 1e-5"
                                  : among(released, size) ? rule + "; the released model has it"
                                                          : rule};
}

Constant timm_init(const std::string& size, std::int64_t depth) {
  if (!among(in_timm, size))
    return {layerscale_init(depth), "rule: the paper's by depth; timm has no model of this size"};
  return {size == "xxs36" ? 1e-5 : layerscale_init(depth), timm + ", cait_" + size};
}

CaitPreset make(bool paper, const Size& size, std::int64_t depth) {
  const std::string name = fmt::format("{}{}", size.name, depth), &code = paper ? authors : timm;
  const std::string shape = among(released, name) ? code : "rule: the size's at every depth";
  const std::string recipe = paper ? script : script + "; timm states no recipe for CaiT";
  const std::string betas = "PyTorch's default; " + script + " leaves opt-betas None";
  return {
      .name = fmt::format("{}-{}", paper ? families[0] : families[1], name),
      .constants = {{"dim", {size.dim, shape}},
                    {"heads", {size.heads, shape}},
                    {"depth", {static_cast<double>(depth), among(released, name) ? code : "rule: named by the preset"}},
                    {"depth_token_only", {2, code}},
                    {"mlp_ratio", {4, code}},
                    {"patch", {16, code}},
                    {"norm_eps", {1e-6, code}},
                    {"weight_std", {0.02, code}},
                    {"talking_heads_std", {0.02, code}},
                    {"talking_heads_bias", {0, code}},
                    {"init", paper ? paper_init(name, depth) : timm_init(name, depth)},
                    {"drop_path", paper ? paper_drop_path(size, static_cast<std::size_t>(depth / 12 - 2))
                                        : Constant{0, timm + ", default"}},
                    {"lr_per_512", {5e-4, recipe}},
                    {"lr_start", {1e-6, recipe}},
                    {"lr_end", {1e-5, recipe}},
                    {"warmup_epochs", {5, recipe}},
                    {"epochs", {400, "Touvron et al. 2021: 400 epochs for the final models; " + script + " has 300"}},
                    {"weight_decay", {0.05, recipe}},
                    {"beta1", {0.9, betas}},
                    {"beta2", {0.999, betas}},
                    {"adam_eps", {1e-8, recipe}},
                    {"clip_norm", {0, recipe}},
                    {"label_smoothing", {0.1, recipe}},
                    {"dropout", {0, recipe}},
                    {"attn_drop", {0, code}},
                    {"drop_path_token_only", {0, code}},
                    {"mixup", {0.8, recipe}},
                    {"cutmix", {1, recipe}},
                    {"rand_augment_magnitude", {9, recipe}},
                    {"rand_augment_std", {0.5, recipe}},
                    {"random_erasing", {0.25, recipe}},
                    {"repeated_augmentation", {3, "facebookresearch/deit, samplers.py (num_repeats = 3)"}},
                    {"ema_decay", {0.99996, recipe}},
                    {"eval_crop", {1, code}}}};
}

const std::vector<CaitPreset>& table() {
  static const std::vector<CaitPreset> presets = [] {
    std::vector<CaitPreset> all;
    for (const bool paper : {true, false})
      for (const Size& size : sizes)
        for (const std::int64_t depth : {24, 36, 48}) all.push_back(make(paper, size, depth));
    return all;
  }();
  return presets;
}

}  // namespace

const Constant& CaitPreset::at(const std::string& constant) const {
  const auto it = std::ranges::find(constants, constant, &std::pair<std::string, Constant>::first);
  check(it != constants.end(), "[cait] expected a constant of preset {}, got \"{}\"", name, constant);
  return it->second;
}

Constant& CaitPreset::at(const std::string& constant) {
  return const_cast<Constant&>(std::as_const(*this).at(constant));
}

std::vector<std::string> cait_preset_names() {
  std::vector<std::string> names;
  for (const CaitPreset& p : table()) names.push_back(p.name);
  return names;
}

CaitPreset cait_preset(const std::string& name) {
  const auto it = std::ranges::find(table(), name, &CaitPreset::name);
  if (it != table().end()) return *it;
  std::vector<std::string> names = cait_preset_names();
  std::ranges::stable_sort(names, {}, [&](const std::string& known) { return edit_distance(name, known); });
  names.resize(3);
  fail(fmt::format("[cait] expected a preset such as {}, got \"{}\"; cait_preset_names() lists all of them",
                   fmt::join(names, ", "), name));
}

CaiTOptions cait_options(const std::string& preset) {
  const CaitPreset p = cait_preset(preset);
  const auto whole = [&](const char* constant) { return static_cast<std::int64_t>(p.at(constant).value); };
  return {.image = 224,
          .patch = whole("patch"),
          .channels = 3,
          .classes = 1000,
          .dim = whole("dim"),
          .depth = whole("depth"),
          .heads = whole("heads"),
          .depth_token_only = whole("depth_token_only"),
          .mlp_ratio = p.at("mlp_ratio").value,
          .init = p.at("init").value,
          .norm_eps = p.at("norm_eps").value,
          .attention_dropout = p.at("attn_drop").value,
          .drop_path = {.rate = p.at("drop_path").value}};
}

std::vector<CaitDifference> differences(const CaitPreset& a, const CaitPreset& b) {
  std::vector<CaitDifference> found;
  for (const auto& [name, constant] : a.constants)
    if (b.at(name).value != constant.value) found.push_back({name, constant, b.at(name)});
  return found;
}

}  // namespace plumb::nn
