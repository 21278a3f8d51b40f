// Weights from PyTorch and timm. In Python, for any model of timm's VisionTransformer:
//   safetensors.torch.save_file(timm.create_model("vit_tiny_patch16_224", pretrained=True).state_dict(),
//   "vit_tiny.safetensors")
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  const auto vit =
      [](std::int64_t classes,
         std::uint64_t seed) {  // vit_tiny: .image = 224, .patch = 16, .classes = 1000, .dim = 192, .heads = 3
        return nn::ViT({.image = 16,
                        .patch = 4,
                        .classes = classes,
                        .dim = 32,
                        .depth = 2,
                        .heads = 2,
                        .gate = "pre",
                        .pool = nn::Pool::token,
                        .seed = seed});
      };
  nn::save_weights(vit(10, 1), "vit.safetensors", nn::timm_vit());  // timm's names: what load_state_dict() takes

  // The whole model. Every name and shape must be there, or the error lists what is not.
  nn::ViT model = vit(10, 2);
  nn::load_weights(model, "vit.safetensors", nn::timm_vit());

  // For fine-tuning: a head of another size stays as it was initialised. Names can be changed on the way, such as a
  // "model." before each of them.
  nn::ViT tuned = vit(3, 4);
  nn::NamedTensors given;
  for (const auto& [name, value] : nn::read_safetensors("vit.safetensors").tensors)
    if (const std::string ours = name.starts_with("model.") ? name.substr(6) : name; !ours.starts_with("head."))
      given[ours] = value;
  const nn::Leftovers left =
      nn::assign(nn::weights(tuned, nn::timm_vit()), given, "[fine-tuning] vit.safetensors", {.allow_missing = true});
  fmt::print("as initialised: {}\n", fmt::join(left.missing, ", "));
}
