#include "experiments/vision/programs/published_settings.h"

#include <algorithm>

#include "experiments/vision/study.h"
#include "nn/gates/layerscale.h"
#include "nn/gates/method.h"
#include "nn/models/vit.h"
#include "nn/optim/optimizer.h"

namespace plumb::vision {

namespace {

// Shows the constants that no option sets, below the settings in --print-config.
void note_constants(Study& study, Methods methods) {
  study.cli().config_note([&study, methods = std::move(methods)] {
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
    const std::vector<std::string> names = methods();
    for (const char* gate : {"layerscale", "scalar_gate"})
      if (std::ranges::find(names, gate) != names.end() && !study.cli().has("--epsilons"))
        line(fmt::format("eps of {}", gate), "by depth", nn::layerscale_init_source(36) + "; ours between its depths");
    if (study.network().recipe == RecipeKind::paper)
      for (const std::string& name : names)
        text += fmt::format("  {:<22} {}\n", name, study.network().describe_recipe_of(nn::method_named(name)));
    return text + "Formulas, constants and sources of each method: docs/gates\n";
  });
}

}  // namespace

void explain(lab::Study& study, const std::string& option, const std::string& source) {
  if (study.cli().has(option)) study.cli().explain(option, source);
}

void set_deit_small(Study& study, Methods methods) {
  const std::string model = "facebookresearch/deit, models.py, deit_small_patch16_224",
                    recipe = "facebookresearch/deit, main.py";
  const auto say = [&study](const std::string& source, std::initializer_list<const char*> options) {
    for (const char* option : options) explain(study, option, source);
  };
  NetworkOptions& network = study.network();
  network.dim = 384, network.heads = 6, network.patch = 16, network.pool = nn::Pool::token;
  say(model, {"--dim", "--heads", "--patch", "--pool"});
  network.recipe = RecipeKind::shared, network.weight_init = WeightInit::recipe;
  say("facebookresearch/deit, models.py: the same initial weights for all methods", {"--recipe"});
  say("from --recipe", {"--weight-init"});
  network.drop.drop_path = 0.1, network.drop.drop_path_schedule = DropPathSchedule::linear;
  say(recipe + "; CaiT uses a uniform schedule", {"--drop-path", "--drop-path-schedule"});
  say("facebookresearch/deit, through timm's DropPath", {"--drop-path-form"});
  say("facebookresearch/deit, models.py: none", {"--attn-drop"});
  say("not in DeiT", {"--drop-key", "--drop-key-schedule", "--drop-key-shape", "--drop-key-window",
                      "--drop-key-sharing", "--drop-key-match", "--empty-rows", "--drop-head"});

  constexpr std::int64_t batch = 1024, images = 1'281'167, epochs = 300;
  StudyOptions& run = study.options();
  ImageOptions& from = study.images();
  from.data = "image-folder", from.image_size = 224, from.image_crop = 0.875;
  from.normalization = NormalizationKind::imagenet;
  say("ImageNet-1k, with --image-folder DIR", {"--data"});
  say("facebookresearch/deit, datasets.py: resized to 256 pixels, cropped to 224", {"--image-size", "--image-crop"});
  say("timm, IMAGENET_DEFAULT_MEAN and _STD", {"--normalization"});
  run.batch = batch, run.steps = epochs * (images / batch), run.warmup = 5 * (images / batch);
  say("facebookresearch/deit, README: 1024 images over all GPUs", {"--batch"});
  say(fmt::format("{}: {} epochs of {} images", recipe, epochs, images), {"--steps"});
  say(recipe + ": 5 epochs; DeiT's starts at a learning rate of 1e-6, ours at the peak / steps of the warm-up",
      {"--warmup"});
  say("ours: all images", {"--train-images", "--eval-images"});
  say("the validation images of ImageNet-1k", {"--validation-split"});
  say("ours: at the end", {"--eval-every"});
  say("ours", {"--loss-limit", "--at-lr", "--rates-from", "--control"});
  say("paths", {"--data-dir", "--image-folder"});
  run.device = DeviceChoice::automatic;
  run.dtype = NumberFormat::bf16;
  say("ours; DeiT uses PyTorch's automatic mixed precision, in f16", {"--dtype"});

  OptimizationOptions& o = study.optimization();
  o.lr = 5e-4 * batch / 512, o.optimizer = OptimizerKind::adamw, o.schedule = ScheduleKind::cosine,
  o.weight_decay = 0.05, o.clip_norm = 0;
  say(recipe + ": 5e-4 x batch / 512", {"--lr"});
  say(recipe, {"--optimizer", "--weight-decay", "--clip-norm"});
  say(recipe + "; DeiT's ends at 1e-5, ours at 0", {"--schedule"});
  study.augmentation().augment = AugmentKind::deit;
  say(recipe +
          ": resized crops, flips, rand-m9-mstd0.5-inc1, erasing 0.25, mixup 0.8, CutMix 1, 3 repeats, smoothing 0.1",
      {"--augment"});
  say("from --augment", {"--flip", "--crop-padding", "--crop-scale", "--rand-augment", "--rand-augment-magnitude",
                         "--random-erasing", "--mixup", "--cutmix", "--repeated-augmentation", "--label-smoothing"});
  o.ema_decay = 0;
  say(recipe + " also keeps an average with decay 0.99996; its results are for the weights themselves",
      {"--ema-decay"});
  note_constants(study, std::move(methods));
  run.seeds = {0};
  say("ours: published results have one seed; claims need at least three", {"--seeds"});
}

void set_deit_small_for_search(Study& study, Methods methods) {
  set_deit_small(study, std::move(methods));
  study.network().recipe = RecipeKind::paper;
  explain(study, "--recipe", "the recipe of each method's paper");
  study.options().steps /= 20, study.options().warmup.reset();
  explain(study, "--steps", "ours: a twentieth of DeiT's 300 epochs");
  explain(study, "--warmup", "from --recipe");
  study.augmentation().augment = AugmentKind::none;
  explain(study, "--augment", "ours: the loss on images without augmentation decides whether a network trains");
  study.options().seeds = {0, 1, 2};
  explain(study, "--seeds", "ours: the search measures shares of seeds");
  explain(study, "--gates", "ours");
  explain(study, "--trained-at", "ours");
}

}  // namespace plumb::vision
