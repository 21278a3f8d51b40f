// Saves and loads models for tools/check_timm.sh and tools/check_detr.sh.
//   weights_tool save MODEL FILE                writes a model with random weights under the names of the other library
//   weights_tool logits MODEL FILE IMAGES OUT   loads FILE, and writes to OUT the "logits" of the "images" in the file
//                                               IMAGES; of a DETR, also the "boxes", and IMAGES may have a mask "keep"
// If MODEL is "any" in "logits", the model is made from the description in FILE.
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "plumb/vision.h"

using namespace plumb;

namespace {

struct Model {
  std::unique_ptr<nn::Layer> layer;
  nn::KeyMap map;
};

Model small_detr(const char* gate) {
  return {std::make_unique<nn::Detr>(nn::DetrOptions{.classes = 5,
                                                     .backbone = {8, 16},
                                                     .dim = 32,
                                                     .heads = 4,
                                                     .encoder = 2,
                                                     .decoder = 3,
                                                     .hidden = 48,
                                                     .queries = 7,
                                                     .method = gate}),
          nn::facebook_names()};
}

// One entry per model. tools/check_timm.py and tools/check_detr.py have the same models.
const std::map<std::string, std::function<Model()>> models{
    {"vit",
     [] {
       return Model{std::make_unique<nn::ViT>(
                        nn::ViTOptions{.dim = 48, .depth = 4, .heads = 4, .method = "pre", .pool = nn::Pool::token}),
                    nn::timm_vit()};
     }},
    {"vit_layerscale",
     [] {
       return Model{std::make_unique<nn::ViT>(nn::ViTOptions{
                        .dim = 48, .depth = 4, .heads = 4, .method = "layerscale", .pool = nn::Pool::token}),
                    nn::timm_vit()};
     }},
    {"vit_mean",
     [] {
       return Model{std::make_unique<nn::ViT>(
                        nn::ViTOptions{.dim = 48, .depth = 4, .heads = 4, .method = "pre", .pool = nn::Pool::mean}),
                    nn::timm_vit()};
     }},
    {"cait",
     [] {
       return Model{std::make_unique<nn::CaiT>(
                        nn::CaiTOptions{.image = 32, .patch = 8, .classes = 10, .dim = 48, .depth = 4, .heads = 4}),
                    nn::timm_cait()};
     }},
    {"detr_post", [] { return small_detr("post"); }},
    {"detr_pre", [] { return small_detr("pre"); }},
};

// The results of a model for the "images" of a file, and of a DETR for its mask "keep".
nn::NamedTensors results_of(const nn::Layer& model, const Tensor& images, const Tensor& keep) {
  const auto* const detr = dynamic_cast<const nn::Detr*>(&model);
  if (!detr) return {{"logits", model(images)}};
  const nn::Detections found = detr->detect(images, keep);
  return {{"logits", found.logits}, {"boxes", found.boxes}};
}

// Moves every parameter off its initial value, so that no term is hidden by a 0, a 1 or a small gate.
void shake(nn::Module& module) {
  module.each_parameter([](const std::string& name, nn::Parameter& p) {
    const Tensor moved = p.value.detach() + 0.2 * random_normal(p.value.shape(), 1, name);
    copy_into(moved.array(), p.value.array());
  });
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "", name = argc > 2 ? argv[2] : "";
  const bool save = command == "save" && argc == 4, logits = command == "logits" && argc == 6;
  if (!((save || logits) && models.contains(name)) && !(logits && name == "any")) {
    std::fprintf(
        stderr, "usage: weights_tool save MODEL FILE | logits MODEL FILE IMAGES OUT; MODEL is any (logits) or one of:");
    for (const auto& [known, make] : models) std::fprintf(stderr, " %s", known.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  Model m;
  if (name == "any") {
    auto model = nn::make_model(nn::card_of(nn::read_safetensors(argv[3]), argv[3]));
    nn::load_pretrained(*model, nn::read_safetensors(argv[3]), argv[3]);
    m.layer = std::move(model);
  } else {
    m = models.at(name)();
    if (logits) nn::load_weights(*m.layer, argv[3], m.map);
  }
  m.layer->eval();
  if (save) {
    shake(*m.layer);
    nn::save_weights(*m.layer, argv[3], m.map);
    return 0;
  }
  const nn::NamedTensors inputs = nn::read_safetensors(argv[4]).tensors;
  const auto images = inputs.find("images");
  check(images != inputs.end(), "[weights_tool] expected a tensor \"images\" [B, C, H, W] in {}, got {} others",
        argv[4], inputs.size());
  const auto keep = inputs.find("keep");
  const NoGrad no_grad;
  nn::write_safetensors(
      argv[5], {.tensors = results_of(*m.layer, images->second, keep == inputs.end() ? Tensor() : keep->second),
                .metadata = {}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
