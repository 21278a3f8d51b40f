// Weights in timm's format: saved, loaded, and loaded for fine-tuning. In Python, this line writes such a file for any
// model of timm's VisionTransformer:
//   safetensors.torch.save_file(timm.create_model("vit_tiny_patch16_224", pretrained=True).state_dict(),
//                               "vit_tiny.safetensors")
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  // vit_tiny has .image = 224, .patch = 16, .classes = 1000, .dim = 192, .heads = 3.
  const auto vit = [](std::int64_t classes, std::uint64_t seed) {
    return nn::ViT({.image = 16,
                    .patch = 4,
                    .classes = classes,
                    .dim = 32,
                    .depth = 2,
                    .heads = 2,
                    .method = "pre",
                    .pool = nn::Pool::token,
                    .seed = seed});
  };
  nn::save_weights(vit(10, 1), "vit.safetensors", nn::timm_vit());  // under timm's names

  // Load the whole model. If a name is missing or a shape differs, the error lists each difference.
  nn::ViT model = vit(10, 2);
  nn::load_weights(model, "vit.safetensors", nn::timm_vit());

  // Load for fine-tuning: leave out the head, because the head has another size and keeps its initial values. The loop
  // also removes the prefix "model." that some files put before each name.
  nn::ViT tuned = vit(3, 4);
  nn::NamedTensors given;
  for (const auto& [name, value] : nn::read_safetensors("vit.safetensors").tensors)
    if (const std::string ours = name.starts_with("model.") ? name.substr(6) : name; !ours.starts_with("head."))
      given[ours] = value;
  const nn::Leftovers left =
      nn::assign(nn::weights(tuned, nn::timm_vit()), given, "[fine-tuning] vit.safetensors", {.allow_missing = true});
  fmt::print("these keep their initial values: {}\n", fmt::join(left.missing, ", "));
}
