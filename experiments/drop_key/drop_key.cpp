// Is it better to drop keys before the softmax (Li et al., CVPR 2023, DropKey) or probabilities after the softmax? The
// program compares forms, rates, schedules over depth, and a last part of training without dropping. The program also
// measures how peaked attention becomes. The paper predicts the peakedness of attention from the gradient (its Lagrange
// argument).
#include <algorithm>
#include <cmath>
#include <span>

#include "experiments/vision/data/split.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/pictures/mask_images.h"
#include "experiments/vision/programs/published_settings.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// DropKey with single keys (plain), squares (block) or stripes (cross) of patches; or dropout of the probabilities.
enum class DropForm { plain, block, cross, dropout };
constexpr auto names_of(DropForm) { return std::array{"plain", "block", "cross", "dropout"}; }

// Measures how peaked the attention of a trained network is, on validation images without dropping. There are two
// measures: the entropy divided by ln T (1 is uniform), and the largest probability. Both measures are means over
// blocks, heads and queries.
Values peakedness(const Trial& trial, nn::ViT& model) {
  const ImageSet& all = images(trial).data().validation;
  const ImageSet set = few_images(all, std::min<std::int64_t>(64, all.size()));
  const NoGrad no_grad;
  const nn::EvaluationScope scope(model);
  const nn::AttentionMaps maps(model);
  model(to_tensors(evaluation_batch(set, images(trial).normalization(), 0, set.size()), set).images);
  double entropy = 0, largest = 0, queries = 0;
  for (const nn::AttentionMap& map : maps.all()) {
    const auto keys = static_cast<std::size_t>(map.probabilities.dim(3));
    const std::vector<double> all_rows = map.probabilities.values();
    for (std::size_t start = 0; start < all_rows.size(); start += keys, ++queries) {
      const std::span row(&all_rows[start], keys);
      for (const double p : row) entropy -= p > 0 ? p * std::log(p) / std::log(static_cast<double>(keys)) : 0;
      largest += std::ranges::max(row);
    }
  }
  return {{"attention_entropy", entropy / queries}, {"attention_max", largest / queries}};
}

const char* const dropkey_paper = "Li et al., CVPR 2023, DropKey";

struct DropKeyStudy : Study {
  DropKeyStudy()
      : Study("drop_key",
              "Does it help to drop keys before the softmax? In which form, at which rate, and at which depth?") {
    only([this](const Point& p) {
      const bool constant = schedule.has_usual(p, nn::Schedule::constant), untuned = tune.has_usual(p, 0.0);
      if (p[rate] == 0)  // without dropping all points are equal, so one is enough
        return form.has_usual(p, DropForm::plain) && constant && untuned;
      return (p[form] == DropForm::plain || constant) && (constant || untuned);
    });
    cli().section("Model");
    cli().option("--depth", &depth, "Number of blocks").at_least(1).at_most(largest_size);
    for (const char* option : {"--drop-key", "--drop-key-shape", "--attn-drop"})
      cli().leave_out(option, "use --rates and --forms");
    check([this](const DataFacts& data) {
      for (const DropForm f : form.values()) {
        NetworkOptions options = network();
        if (f != DropForm::dropout) {
          options.drop.drop_key = std::max(0.01, rate.values().back());
          options.drop.drop_key_shape = enum_named<DropShape>("drop_shape", enum_name(f));
        }
        options.check_for(image_sizes(data));
      }
    });
    defaults({.steps = 600, .warmup = 30, .lr = 1e-3});
    network().patch = 4;
    network().drop.drop_key_match = nn::DropMatch::share;
    one_rate_for(schedule);
    choose_rates_by(val_accuracy, Better::higher);
    control(form == DropForm::plain && rate == 0);
    cli().preset("quick", "all forms at rates 0 and 0.3 on glyphs-few, one seed; three minutes on two cores",
                 {{"--data glyphs-few --rates 0,0.3 --drop-key-schedules constant --tunes 0 --steps 400 --depth 6"}});
    cli().preset("cpu",
                 "all forms at rates 0 and 0.3 on 5,000 images of CIFAR-100, few enough to need regularisation, each "
                 "form at its own rate, 12 judged seeds; two to four hours on two cores; needs --data-dir",
                 {{"--data cifar-100 --train-images 5000 --seeds 0..12 --rates 0,0.3 --tunes 0"},
                  {"--steps 1000 --warmup 100 --depth 6"}});
    add_paper_preset(*this, "CIFAR-100 with the depth and width of T2T-ViT-19, rate 0.3; needs --data-dir and a GPU",
                     {{"--dim 448 --heads 7 --depth 19",
                       "yitu-opensource/T2T-ViT, t2t_vit_19; ours: MLP ratio 4 (there 3), no tokens-to-token stage"},
                      {"--patch 4", "ours: images of 32 pixels are not enlarged; T2T-ViT enlarges them to 224"},
                      {"--image-size 224 --image-crop 1", "only for images in files, not used here"},
                      {"--data cifar-100", "Li et al., CVPR 2023, DropKey, as a secondary text reports it"},
                      {"--normalization data", "ours"},
                      {"--batch 128 --steps 23400 --warmup 1950 --lr 0.0005",  // 60 and 5 epochs of 390 steps
                       "ours: the paper fine-tunes, for a length that we do not know"},
                      {"--forms plain,block,cross,dropout --drop-key-schedules --drop-key-sharing", dropkey_paper},
                      {"--rates 0,0.3", "Li et al., CVPR 2023, DropKey: 0.3 on CIFAR, as a secondary text reports it"},
                      {"--tunes", "Li et al., CVPR 2023, DropKey; ours: the length"},
                      {"--validation-split", "CIFAR-100's own test images"},
                      {"--drop-key-window", "Li et al., CVPR 2023, DropKey: blocks of 3, crosses of 1"},
                      {"--empty-rows", "ours: in the paper's code such a row attends uniformly to all keys"},
                      {"--drop-key-match", "ours: shapes are compared at an equal share of dropped keys"}},
                     "pre");
    cli().examples(
        {"--preset quick",
         "--forms plain,dropout --rates 0,0.05,0.1,0.2 --drop-key-schedules decreasing --tunes 0 --seeds 0..2"});
    state_claims();
    output([this](const StudyResults& r) {
      // The name of a point in charts: "none", "plain 0.3 decreasing", "block 0.3 tuned 0.1".
      const auto name = [this](const Point& p) -> std::string {
        if (p[rate] == 0) return "none";
        return fmt::format("{} {:g}{}{}", enum_name(p[form]), p[rate],
                           p[schedule] == nn::Schedule::constant ? "" : fmt::format(" {}", enum_name(p[schedule])),
                           p[tune] == 0 ? "" : fmt::format(" tuned {:g}", p[tune]));
      };
      return Section{.title = "Accuracy and entropy of each form",
                     .caption =
                         "Means over the seeds with 95 % t intervals, and the single seeds. tuned: the last share of "
                         "the training, without dropping. Entropy: divided by the entropy of uniform attention.",
                     .charts = {dots_of(r, val_accuracy, "Validation accuracy", name),
                                dots_of(r, "attention_entropy", "Entropy of attention", name)}};
    });
    output(masks_section);
    output(attention_section);
    columns({train_loss, val_loss, val_accuracy, "attention_entropy", "attention_max"});
  }

  const Axis<DropForm> form = axis<DropForm>("--forms",
                                             "DropKey with single keys (plain), squares (block) or stripes (cross) of "
                                             "patches; dropout: probabilities after the softmax");
  const Axis<double> rate =
      axis("--rates", {0.0, 0.1, 0.3}, "Shares of keys or probabilities to drop; 0: nothing").at_least(0).below(1);
  const Axis<nn::Schedule> schedule =
      axis("--drop-key-schedules", {nn::Schedule::constant, nn::Schedule::decreasing, nn::Schedule::increasing},
           "Schedules of the rate over depth; only for the form plain");
  const Axis<double> tune =
      axis("--tunes", {0.0, 0.1}, "Shares of the steps, at the end, without dropping; only for the constant schedule")
          .at_least(0)
          .below(1);
  std::int64_t depth = 8;

  void state_claims() {
    using enum nn::Schedule;
    using enum DropForm;
    const Point untuned = schedule == constant && tune == 0;
    for (const double r : {0.05, 0.1, 0.2, 0.3}) {
      const std::string at = fmt::format("rate {:g}: ", r);
      const Point place = rate == r && untuned, of_plain = rate == r && form == plain;
      Claim& better = claim(at + "DropKey is better than none", dropkey_paper,
                            higher(val_accuracy, rate == r, rate == 0).at(form == plain && untuned));
      if (r == 0.3) better.primary();  // the paper's rate on CIFAR
      claim(at + "DropKey is better than dropout of attention", dropkey_paper,
            higher(val_accuracy, form == plain, form == dropout).at(place));
      claim(at + "decreasing over depth is better than constant", dropkey_paper,
            higher(val_accuracy, schedule == decreasing, schedule == constant).at(of_plain && tune == 0));
      claim(at + "constant over depth is better than increasing", dropkey_paper,
            higher(val_accuracy, schedule == constant, schedule == increasing).at(of_plain && tune == 0));
      for (const DropForm shape : {block, cross})
        claim(fmt::format("{}{} is not better than single keys, by more than half a point", at, enum_name(shape)),
              dropkey_paper, not_lower(val_accuracy, form == plain, form == shape, 0.005).at(place));
      claim(at + "a last tenth of training without DropKey helps", "ours; secondary texts have it fine-tuned without",
            higher(val_accuracy, tune == 0.1, tune == 0).at(of_plain && schedule == constant));
      claim(at + "attention is less peaked under DropKey than under dropout of attention",
            "the same, its Lagrange argument", higher("attention_entropy", form == plain, form == dropout).at(place));
    }
    const auto add = [this](nn::Schedule s, double r, const char* figure,
                            const char* source = "Li et al., CVPR 2023, as quoted by a secondary text") {
      published(form == plain && schedule == s && rate == r && tune == 0, val_accuracy, figure, source);
    };
    add(increasing, 0.3, "77.2 % on CIFAR-100, 96.6 on CIFAR-10 (T2T-19)");
    add(constant, 0.3, "78.6 % on CIFAR-100, 97.4 on CIFAR-10 (T2T-19)");
    add(decreasing, 0.3, "79.2 % on CIFAR-100, 97.6 on CIFAR-10 (T2T-19)");
    add(constant, 0.1,
        "82.94 % on ImageNet, dropout of attention 82.68 (T2T-19, their best rate; schedule not stated)");
    add(constant, 0.05,
        "82.04 and 84.53 % on ImageNet, dropout of attention 81.65 and 84.35 (T2T-14 and VOLO-d1, their best rate; "
        "schedule not stated)");
    add(constant, 0.3,
        "42.9 AP on COCO, dropout of attention 42.2, none 41.9 (DETR; rate not stated); DETR as published, with "
        "dropout of attention, 42.0",
        "Li et al., CVPR 2023, their poster; facebookresearch/detr");
  }

  void train(Trial& trial) const {
    nn::ViTOptions o = vit(trial, {.depth = depth, .method = "pre"});
    if (trial[form] == DropForm::dropout) {
      o.attention_dropout = trial[rate];
    } else {
      o.drop_key.rate = trial[rate];
      o.drop_key.shape = enum_named<DropShape>("drop_shape", enum_name(trial[form]));
    }
    nn::ViT model(o);
    const std::int64_t grid = o.image / o.patch;
    attach_masks(trial, model.stack(), grid * grid + (o.pool == nn::Pool::token));
    // The steps at the end of the training that run without dropping.
    const auto without = static_cast<std::int64_t>(std::llround(trial[tune] * static_cast<double>(trial.steps())));
    trial.train(
        model, {.before = [&](std::int64_t step) { model.stack().drop_in_attention(step < trial.steps() - without); }});
    if (!trial.has_diverged()) trial.measure(peakedness(trial, model));
    attach_attention(trial, model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::drop_key(int argc, const char* const* argv) { return run<vision::DropKeyStudy>(argc, argv); }
