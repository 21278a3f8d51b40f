// Is it better to drop keys before the softmax (Li et al., CVPR 2023, DropKey) or probabilities after the softmax? The
// program compares forms, rates, schedules over depth, and a last part of training without dropping. The program also
// measures how peaked attention becomes. The paper predicts the peakedness of attention from the gradient (its Lagrange
// argument).
#include "experiments/programs.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "experiments/lab/report/curves.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/pictures/mask_images.h"
#include "experiments/vision/pictures/pictures.h"
#include "experiments/vision/programs/published_settings.h"
#include "experiments/vision/study.h"
#include "nn/evaluation_scope.h"
#include "nn/layers/attention_maps.h"

using namespace plumb;

namespace {

// Measures how peaked the attention of a trained network is, on validation images without dropping. There are two
// measures: the entropy divided by ln T (1 is uniform), and the largest probability. Both measures are means over
// blocks, heads and queries.
lab::Values peakedness(const lab::Trial& trial, nn::ViT& model) {
  const vision::ImageSet& all = vision::images(trial).data().validation;
  const vision::ImageSet set = vision::few_images(all, std::min<std::int64_t>(64, all.size()));
  const NoGrad no_grad;
  const nn::EvaluationScope scope(model);
  const nn::AttentionMaps maps(model);
  model(vision::to_tensors(vision::evaluation_batch(set, vision::images(trial).normalization(), 0, set.size()), set)
            .images);
  double entropy = 0, largest = 0, queries = 0;
  for (const nn::AttentionMap& map : maps.all()) {
    const auto keys = static_cast<std::size_t>(map.probabilities.dim(3));
    const std::vector<double> p = map.probabilities.values();
    for (auto row = p.begin(); row != p.end(); row += static_cast<std::ptrdiff_t>(keys), ++queries) {
      const auto end = row + static_cast<std::ptrdiff_t>(keys);
      for (auto it = row; it != end; ++it)
        entropy -= *it > 0 ? *it * std::log(*it) / std::log(static_cast<double>(keys)) : 0;
      largest += *std::max_element(row, end);
    }
  }
  return {{"attention_entropy", entropy / queries}, {"attention_max", largest / queries}};
}

// The name of a point in charts: "none", "plain 0.3 decreasing", "block 0.3 tuned 0.1".
std::string rate_and_form(const lab::Point& p) {
  const double rate = p.get<double>("rate"), tune = p.get<double>("tune");
  if (rate == 0) return "none";
  const std::string schedule = p.get<std::string>("drop_key_schedule");
  return fmt::format("{} {:g}{}{}", p.get<std::string>("form"), rate, schedule == "constant" ? "" : " " + schedule,
                     tune == 0 ? "" : fmt::format(" tuned {:g}", tune));
}

}  // namespace

int plumb::lab::drop_key(int argc, const char* const* argv) {
  vision::Study study(
      "drop_key", "Does it help to drop keys before the softmax? In which form, at which rate, and at which depth?");
  const auto form = study
                        .axis<std::string>("--forms", {"plain", "block", "cross", "dropout"},
                                           "DropKey with single keys (plain), squares (block) or stripes (cross) of "
                                           "patches; dropout: probabilities after the softmax")
                        .one_of("form", {"plain", "block", "cross", "dropout"});
  const auto rate = study.axis<double>("--rates", {0, 0.1, 0.3}, "Shares of keys or probabilities to drop; 0: nothing")
                        .at_least(0)
                        .below(1);
  const auto schedule = study
                            .axis<std::string>("--drop-key-schedules", {"constant", "decreasing", "increasing"},
                                               "Schedules of the rate over depth; only for the form plain")
                            .one_of("schedule", enum_names<nn::Schedule>());
  const auto tune =
      study
          .axis<double>("--tunes", {0, 0.1},
                        "Shares of the steps, at the end, without dropping; only for the constant schedule")
          .at_least(0)
          .below(1);
  // The value with which other values are compared: `wanted` if the axis has this value, otherwise the first value.
  const auto reference = [](const auto& axis, const auto& wanted) {
    const auto values = axis.values();
    return std::ranges::find(values, wanted) != values.end() ? wanted : values.front();
  };
  study.only([&](const lab::Point& p) {
    const std::string of = p.get<std::string>("form");
    const bool constant = p.get<std::string>("drop_key_schedule") == reference(schedule, std::string("constant")),
               untuned = p.get<double>("tune") == reference(tune, 0.0);
    if (p.get<double>("rate") == 0)
      return of == reference(form, std::string("plain")) && constant &&
             untuned;  // without dropping all points are equal, so one is enough
    return (of == "plain" || constant) && (constant || untuned);
  });
  std::int64_t depth = 8;
  lab::Cli& cli = study.cli();
  cli.section("Model");
  cli.option("--depth", &depth, "Number of blocks").at_least(1).at_most(lab::largest_size);
  study.network().patch = 4;
  study.judging().control = "plain rate 0 drop_key_schedule constant tune 0";
  for (const char* option : {"--drop-key", "--drop-key-shape", "--attn-drop"})
    cli.leave_out(option, "use --rates and --forms");
  study.check([&](const lab::DataFacts& data) {
    for (const std::string& name : form.values()) {
      vision::NetworkOptions network = study.network();
      if (name != "dropout")
        network.drop.drop_key = std::max(0.01, rate.values().back()),
        network.drop.drop_key_shape = enum_named<DropShape>("drop_shape", name);
      network.check_for(vision::image_sizes(data));
    }
  });
  study.network().drop.drop_key_match = nn::DropMatch::share;
  study.options().steps = 600, study.options().warmup = 30;
  study.optimization().lr = 1e-3;
  study.one_rate_for(schedule);
  study.choose_rates_by("val_accuracy", lab::Better::higher);
  cli.preset("quick", "all forms at rates 0 and 0.3 on glyphs-few, one seed; three minutes on two cores", [&] {
    study.images().data = "glyphs-few";
    rate.set({0, 0.3}), schedule.set({"constant"}), tune.set({0});
    study.options().steps = 400;
    depth = 6;
  });
  cli.preset("cpu",
             "all forms at rates 0 and 0.3 on 5,000 images of CIFAR-100, few enough to need regularisation, each "
             "form at its own rate, 12 judged seeds; two to four hours on two cores; needs --data-dir",
             [&] {
               study.images().data = "cifar-100", study.images().train_images = 5000;
               study.options().judge_seeds(12);
               rate.set({0, 0.3}), tune.set({0});
               study.options().steps = 1000, study.options().warmup = 100;
               depth = 6;
             });
  cli.preset("paper", "CIFAR-100 with the depth and width of T2T-ViT-19, rate 0.3; needs --data-dir and a GPU", [&] {
    vision::set_deit_small(study, [] { return std::vector<std::string>{"pre"}; });
    study.network().dim = 448, study.network().heads = 7, depth = 19;
    const std::string size =
        "yitu-opensource/T2T-ViT, t2t_vit_19; ours: MLP ratio 4 (there 3), no tokens-to-token stage";
    for (const char* option : {"--dim", "--heads", "--depth"}) vision::explain(study, option, size);
    study.network().patch = 4;
    vision::explain(study, "--patch", "ours: images of 32 pixels are not enlarged; T2T-ViT enlarges them to 224");
    study.images().data = "cifar-100", study.images().normalization = vision::NormalizationKind::data,
    study.images().image_size = 224, study.images().image_crop = 1;
    for (const char* option : {"--image-size", "--image-crop"})
      vision::explain(study, option, "only for images in files, not used here");
    vision::explain(study, "--data", "Li et al., CVPR 2023, DropKey, as a secondary text reports it");
    vision::explain(study, "--normalization", "ours");
    study.options().batch = 128, study.options().steps = 60 * 390, study.options().warmup = 5 * 390,
    study.optimization().lr = 5e-4;
    for (const char* option : {"--batch", "--steps", "--warmup", "--lr"})
      vision::explain(study, option, "ours: the paper fine-tunes, for a length that we do not know");
    form.set({"plain", "block", "cross", "dropout"}), rate.set({0, 0.3});
    vision::explain(study, "--forms", "Li et al., CVPR 2023, DropKey");
    vision::explain(study, "--rates", "Li et al., CVPR 2023, DropKey: 0.3 on CIFAR, as a secondary text reports it");
    vision::explain(study, "--drop-key-schedules", "Li et al., CVPR 2023, DropKey");
    vision::explain(study, "--tunes", "Li et al., CVPR 2023, DropKey; ours: the length");
    vision::explain(study, "--validation-split", "CIFAR-100's own test images");
    vision::explain(study, "--drop-key-window", "Li et al., CVPR 2023, DropKey: blocks of 3, crosses of 1");
    vision::explain(study, "--drop-key-sharing", "Li et al., CVPR 2023, DropKey");
    vision::explain(study, "--empty-rows", "ours: in the paper's code such a row attends uniformly to all keys");
    vision::explain(study, "--drop-key-match", "ours: shapes are compared at an equal share of dropped keys");
  });
  cli.example("--preset quick");
  cli.example("--forms plain,dropout --rates 0,0.05,0.1,0.2 --drop-key-schedules decreasing --tunes 0 --seeds 0..2");
  const char* paper = "Li et al., CVPR 2023, DropKey";
  for (const double r : {0.05, 0.1, 0.2, 0.3}) {
    const auto at = [&](lab::Comparison c, lab::Point place = {}) {
      place.set("rate", r);
      return c.at(place);
    };
    lab::Claim& claim = study.claim(fmt::format("rate {:g}: DropKey is better than none", r), paper,
                                    lab::higher("val_accuracy", {{"rate", r}}, {{"rate", 0.0}})
                                        .at({{"form", "plain"}, {"drop_key_schedule", "constant"}, {"tune", 0.0}}));
    if (r == 0.3) claim.primary();  // the paper's rate on CIFAR
    study.claim(fmt::format("rate {:g}: DropKey is better than dropout of attention", r), paper,
                at(lab::higher("val_accuracy", {{"form", "plain"}}, {{"form", "dropout"}}),
                   {{"drop_key_schedule", "constant"}, {"tune", 0.0}}));
    study.claim(
        fmt::format("rate {:g}: decreasing over depth is better than constant", r), paper,
        at(lab::higher("val_accuracy", {{"drop_key_schedule", "decreasing"}}, {{"drop_key_schedule", "constant"}}),
           {{"form", "plain"}, {"tune", 0.0}}));
    study.claim(
        fmt::format("rate {:g}: constant over depth is better than increasing", r), paper,
        at(lab::higher("val_accuracy", {{"drop_key_schedule", "constant"}}, {{"drop_key_schedule", "increasing"}}),
           {{"form", "plain"}, {"tune", 0.0}}));
    for (const char* shape : {"block", "cross"})
      study.claim(fmt::format("rate {:g}: {} is not better than single keys, by more than half a point", r, shape),
                  paper,
                  at(lab::not_lower("val_accuracy", {{"form", "plain"}}, {{"form", shape}}, 0.005),
                     {{"drop_key_schedule", "constant"}, {"tune", 0.0}}));
    study.claim(fmt::format("rate {:g}: a last tenth of training without DropKey helps", r),
                "ours; secondary texts have it fine-tuned without",
                at(lab::higher("val_accuracy", {{"tune", 0.1}}, {{"tune", 0.0}}),
                   {{"form", "plain"}, {"drop_key_schedule", "constant"}}));
    study.claim(fmt::format("rate {:g}: attention is less peaked under DropKey than under dropout of attention", r),
                "the same, its Lagrange argument",
                at(lab::higher("attention_entropy", {{"form", "plain"}}, {{"form", "dropout"}}),
                   {{"drop_key_schedule", "constant"}, {"tune", 0.0}}));
  }
  const auto published = [&](const char* schedule_name, double r, const std::string& figure) {
    study.published({{"form", "plain"}, {"drop_key_schedule", schedule_name}, {"rate", r}, {"tune", 0.0}},
                    "val_accuracy", figure, "Li et al., CVPR 2023, as quoted by a secondary text");
  };
  published("increasing", 0.3, "77.2 % on CIFAR-100, 96.6 on CIFAR-10 (T2T-19)");
  published("constant", 0.3, "78.6 % on CIFAR-100, 97.4 on CIFAR-10 (T2T-19)");
  published("decreasing", 0.3, "79.2 % on CIFAR-100, 97.6 on CIFAR-10 (T2T-19)");
  published("constant", 0.1,
            "82.94 % on ImageNet, dropout of attention 82.68 (T2T-19, their best rate; schedule not stated)");
  published("constant", 0.05,
            "82.04 and 84.53 % on ImageNet, dropout of attention 81.65 and 84.35 (T2T-14 and VOLO-d1, their best rate; "
            "schedule not stated)");
  study.published({{"form", "plain"}, {"drop_key_schedule", "constant"}, {"rate", 0.3}, {"tune", 0.0}}, "val_accuracy",
                  "42.9 AP on COCO, dropout of attention 42.2, none 41.9 (DETR; rate not stated); DETR as published, "
                  "with dropout of attention, 42.0",
                  "Li et al., CVPR 2023, their poster; facebookresearch/detr");
  study.output([](const lab::StudyResults& r) {
    return lab::Section{
        .title = "Accuracy and entropy of each form",
        .caption =
            "Means over the seeds with 95 % t intervals, and the single seeds. tuned: the last share of the "
            "training, without dropping. Entropy: divided by the entropy of uniform attention.",
        .charts = {lab::dots_of(r, "val_accuracy", "Validation accuracy", rate_and_form),
                   lab::dots_of(r, "attention_entropy", "Entropy of attention", rate_and_form)}};
  });
  study.output(vision::masks_section);
  study.output(vision::attention_section);
  study.columns({"train_loss", "val_loss", "val_accuracy", "attention_entropy", "attention_max"});
  study.show({"train_loss", "val_loss", "val_accuracy", "attention_entropy"});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViTOptions o = vision::vit(trial, {.depth = depth, .gate = "pre"});
    if (trial[form] == "dropout") {
      o.attention_dropout = trial[rate];
    } else {
      o.drop_key.rate = trial[rate];
      o.drop_key.shape = enum_named<DropShape>("drop_shape", trial[form]);
    }
    nn::ViT model(o);
    const std::int64_t grid = o.image / o.patch;
    vision::attach_masks(trial, model.stack(), grid * grid + (o.pool == nn::Pool::token));
    // The steps at the end of the training that run without dropping.
    const auto without = static_cast<std::int64_t>(std::llround(trial[tune] * static_cast<double>(trial.steps())));
    trial.train(model, [&](std::int64_t step) {
      model.stack().drop_in_attention(step < trial.steps() - without);
      return nullptr;
    });
    if (!trial.has_diverged()) trial.measure(peakedness(trial, model));
    vision::attach_attention(trial, model);
  });
}
