#include "experiments/vision/programs/published_settings.h"

#include <algorithm>
#include <sstream>

#include "experiments/vision/study.h"
#include "nn/gates/layerscale.h"
#include "nn/gates/method.h"
#include "nn/models/vit.h"
#include "nn/optim/optimizer.h"

namespace plumb::vision {

namespace {

// The methods of the call: the values of --gates or --gate, or `otherwise`.
std::vector<std::string> methods_of(Study& study, const std::string& otherwise) {
  const CliOption* option = study.cli().declared("--gates");
  if (!option) option = study.cli().declared("--gate");
  std::vector<std::string> methods;
  std::istringstream names(option ? option->text() : otherwise);
  for (std::string name; std::getline(names, name, ',');) methods.push_back(name);
  return methods;
}

// Shows the constants that no option sets, below the settings in --print-config.
void note_constants(Study& study, const std::string& method) {
  study.cli().config_note([&study, method] {
    const std::string model = "facebookresearch/deit, models.py", main = "facebookresearch/deit, main.py";
    std::string text = "Constants that no option sets\n";
    const auto line = [&text](const std::string& name, const std::string& value, const std::string& source) {
      text += fmt::format("  {:<22} {:<46} [{}]\n", name, value, source);
    };
    const nn::ViTOptions vit;
    const nn::AdamWOptions adamw;
    line("width of the MLPs", fmt::format("{} widths", vit.mlp_ratio), model);
    line("bias of q, k and v", "yes", model);
    line("epsilon of the norms", fmt::format("{:g}", vit.norm_eps), model);
    if (study.cli().has("--weight-init"))
      line("weights", "truncated normal, deviation 0.02",
           "timm, trunc_normal_, unless --recipe or --weight-init says otherwise");
    line("class token, positions", "truncated normal, deviation 0.02", model);
    line("patch embedding", "uniform, by number of inputs, as a convolution", "PyTorch, Conv2d");
    line("AdamW's betas", fmt::format("{:g}, {:g}", adamw.beta1, adamw.beta2), main + ": defaults of PyTorch's AdamW");
    line("AdamW's epsilon", fmt::format("{:g}", adamw.eps), main);
    line("weight decay", "not on norms, biases, gates, token, positions",
         model + ", no_weight_decay; timm: none on one-dimensional parameters");
    const std::vector<std::string> names = methods_of(study, method);
    for (const char* gate : {"layerscale", "scalar_gate"})
      if (std::ranges::find(names, gate) != names.end() && !study.cli().has("--epsilons"))
        line(fmt::format("eps of {}", gate), "by depth", nn::layerscale_init_source(36) + "; ours between its depths");
    if (study.network().recipe == RecipeKind::paper)
      for (const std::string& name : names)
        text += fmt::format("  {:<22} {}\n", name, study.network().describe_recipe_of(nn::method_named(name)));
    return text + "Formulas, constants and sources of each method: docs/gates\n";
  });
}

// The settings that searches have, too.
lab::Settings deit_small(Study& study) {
  const std::string model = "facebookresearch/deit, models.py, deit_small_patch16_224",
                    recipe = "facebookresearch/deit, main.py";
  constexpr std::int64_t batch = 1024, images = 1'281'167, epochs = 300, epoch = images / batch;
  return {
      {"--dim 384 --heads 6 --patch 16 --pool token", model},
      {"--recipe shared", "facebookresearch/deit, models.py: the same initial weights for all methods"},
      {"--weight-init recipe", "from --recipe"},
      {"--drop-path 0.1 --drop-path-schedule linear", recipe + "; CaiT uses a uniform schedule"},
      {"--drop-path-form", "facebookresearch/deit, through timm's DropPath"},
      {"--attn-drop", "facebookresearch/deit, models.py: none"},
      {"--drop-key --drop-key-schedule --drop-key-shape --drop-key-window --drop-key-sharing --drop-key-match "
       "--empty-rows --drop-head",
       "not in DeiT"},
      {"--data image-folder", "ImageNet-1k, with --image-folder DIR"},
      {"--image-size 224 --image-crop 0.875",
       "facebookresearch/deit, datasets.py: resized to 256 pixels, cropped to 224"},
      {"--normalization imagenet", "timm, IMAGENET_DEFAULT_MEAN and _STD"},
      {fmt::format("--batch {}", batch), "facebookresearch/deit, README: 1024 images over all GPUs"},
      {fmt::format("--steps {}", epochs * epoch), fmt::format("{}: {} epochs of {} images", recipe, epochs, images)},
      {fmt::format("--warmup {}", 5 * epoch),
       recipe + ": 5 epochs; DeiT's starts at a learning rate of 1e-6, ours at the peak / steps of the warm-up"},
      {"--train-images --eval-images", "ours: all images"},
      {"--validation-split", "the validation images of ImageNet-1k"},
      {"--eval-every", "ours: at the end"},
      {"--loss-limit", "ours"},
      {"--data-dir --image-folder", "paths"},
      {"--device auto"},
      {"--dtype bf16", "ours; DeiT uses PyTorch's automatic mixed precision, in f16"},
      {fmt::format("{} {}", study.cli().has("--lrs") ? "--lrs" : "--lr", 5e-4 * batch / 512),
       recipe + ": 5e-4 x batch / 512"},
      {"--optimizer adamw --weight-decay 0.05 --clip-norm 0", recipe},
      {"--schedule cosine", recipe + "; DeiT's ends at 1e-5, ours at 0"},
      {"--augment deit",
       recipe + ": resized crops, flips, rand-m9-mstd0.5-inc1, erasing 0.25, mixup 0.8, CutMix 1, 3 repeats, "
                "smoothing 0.1"},
      {"--flip --crop-padding --crop-scale --rand-augment --rand-augment-magnitude --random-erasing --mixup --cutmix "
       "--repeated-augmentation --label-smoothing",
       "from --augment"},
      {"--ema-decay 0",
       recipe + " also keeps an average with decay 0.99996; its results are for the weights themselves"},
      {"--seeds 0", "ours: published results have one seed; claims need at least three"}};
}

}  // namespace

void add_paper_preset(Study& study, const std::string& help, const lab::Settings& more, const std::string& method,
                      const std::string& name, const std::function<void()>& also) {
  study.cli().preset(name, help, deit_small(study) + lab::Settings{{"--at-lr --rates-from", "ours"}} + more,
                     [&study, method, also] {
                       note_constants(study, method);
                       if (also) also();
                     });
}

void add_search_preset(Study& study, const lab::Settings& more) {
  study.cli().preset(
      "paper",
      "DeiT-S's size on ImageNet for a twentieth of its epochs (no paper has this search); needs --image-folder and "
      "GPUs",
      deit_small(study) +
          lab::Settings{
              {"--recipe paper", "the recipe of each method's paper"},
              {"--steps 18765", "ours: a twentieth of DeiT's 300 epochs"},
              {"--warmup recipe", "from --recipe"},
              {"--augment none", "ours: the loss on images without augmentation decides whether a network trains"},
              {"--seeds 0,1,2", "ours: the search measures shares of seeds"},
              {"--gates --trained-at", "ours"}} +
          more,
      [&study] { note_constants(study, ""); });
}

}  // namespace plumb::vision
