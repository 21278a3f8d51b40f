// Is it better to drop keys before the softmax (Li et al., CVPR 2023, DropKey) or probabilities after the softmax, in a
// detector? The program trains small DETRs without drops in attention, with dropout of the attention probabilities, and
// with DropKey, of three schedules over depth and in several places. All other dropout is the same in all arms.
#include "experiments/detr/find_objects.h"
#include "experiments/detr/network.h"
#include "experiments/vision/data/shapes.h"
#include "experiments/vision/pictures/object_images.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// The drops in attention: none, of probabilities after the softmax, or of keys before the softmax.
enum class Drop { none, dropout, drop_key };
constexpr auto names_of(Drop) { return std::array{"none", "dropout", "drop_key"}; }
// The attention that drops: all, or that of the encoder, between the queries of the decoder, or from the decoder to the
// image.
enum class Place { everywhere, encoder, decoder, cross };
constexpr auto names_of(Place) { return std::array{"everywhere", "encoder", "decoder", "cross"}; }

// The sizes and the training of facebookresearch/detr on COCO.
Settings facebook_detr() {
  const std::string main_py = "facebookresearch/detr, main.py", coco_py = "facebookresearch/detr, datasets/coco.py";
  return {{"--data coco --train-annotations --train-images --val-annotations --val-images", "COCO 2017"},
          {"--image-side 1067", "ours: one size, 1067 x 800 for COCO's 640 x 480, the largest of " + coco_py +
                                    "; DETR draws shorter sides from 480 to 800, and crops half of the images"},
          {"--mirror 0.5", coco_py},
          {"--train-count --val-count", "ours: all images"},
          {"--dim 256 --heads 8 --encoder 6 --decoder 6 --hidden 2048 --queries 100 --dropout 0.1", main_py},
          {"--backbone 64,128,256,512,512", "ours: stride 32, not pretrained; DETR has a pretrained ResNet-50"},
          {"--backbone-rate 1", "ours, because the backbone is not pretrained; DETR has a tenth"},
          {"--batch 64", "facebookresearch/detr, d2/configs: 64 images; main.py has 2 on each GPU"},
          {"--steps 554400", main_py + ": 300 epochs of 118287 images"},  // 300 x floor(118287 / 64)
          {"--warmup 0", main_py + ": none"},
          {"--device auto"},
          {"--loss-limit --at-lr --rates-from --eval-every --dtype", "ours"},
          {"--seeds", "ours: published results have one seed; claims need at least three"},
          {"--lr 0.0001 --optimizer adamw --clip-norm 0.1", main_py},
          {"--weight-decay 0.0001", main_py + "; ours decays only weights, DETR all parameters"},
          {"--schedule step", main_py + ": one drop, after two thirds; ours has two, after a half and three quarters"},
          {"--ema-decay 0", "not in DETR"}};
}

struct DetrStudy : lab::Study {
  DetrStudy()
      : Study("detr",
              "Does a detector find objects better with DropKey than with dropout of attention, or with neither?") {
    only([this](const Point& p) {
      return (p[form] == Drop::drop_key || schedule.has_usual(p)) &&
             (p[form] != Drop::none || (place.has_usual(p) && rate.has_usual(p)));
    });
    data.declare(cli());
    network.declare(cli());
    problem([this](const StudyOptions& o) {
      return std::make_unique<DetectionProblem>(data, network.options(1, "pre", 0), o);
    });
    search_for_objects.declare(cli());
    cli().section(Cli::instead);
    cli()
        .option(
            "--write-data", &write_to,
            "Write the images of the data set shapes to DIR/train and DIR/val as files in COCO's format; train nothing")
        .path("DIR")
        .scope(Scope::call);
    cli().action([this]() -> std::optional<int> {
      if (search_for_objects.given()) return search_for_objects.run(options());
      if (write_to.empty()) return std::nullopt;
      const DetectionData set = shapes();
      write_coco(set.train, write_to + "/train");
      write_coco(set.validation, write_to + "/val");
      fmt::print("{0} training images in {2}/train, {1} validation images in {2}/val\n", set.train.size(),
                 set.validation.size(), write_to);
      return 0;
    });
    defaults({.steps = 6000, .warmup = 300, .batch = 32, .lr = 1e-3, .weight_decay = 1e-4, .clip_norm = 0.1});
    one_rate_for(schedule);
    choose_rates_by(val_loss, Better::lower);
    control(form == Drop::none);
    cli().preset(
        "quick",
        "without drops, with dropout and with DropKey on shapes, one seed, 3,000 steps (three minutes on two cores)",
        {{"--drop-key-schedules constant --steps 3000"}});
    cli().preset("cpu",
                 "the five arms of the paper's table on shapes, each at its own rate, 12 judged seeds, 6,000 steps",
                 {{"--seeds 0..12"}});
    cli().preset("places", "DropKey everywhere and in one kind of attention only, as in the preset cpu",
                 {{"--forms none,drop_key --drop-key-schedules constant --places everywhere,encoder,decoder,cross"},
                  {"--seeds 0..12"}});
    cli().preset(
        "paper", "the sizes and the training of DETR on COCO; needs the files of COCO and a GPU",
        facebook_detr() +
            Settings{{"--forms", "Li et al., CVPR 2023, DropKey, table of DETR"},
                     {"--rates 0.1", "ours: DETR's rate of dropout; the paper's rate of DropKey is not known to us"},
                     {"--drop-key-schedules constant", "ours: the paper's schedule is not known to us"},
                     {"--places", "ours: as DETR's dropout of attention"},
                     {"--gates post", "facebookresearch/detr, main.py: normalize_before is off"}});
    cli().examples(
        {"--preset quick", "--forms none,drop_key --places everywhere,encoder,cross --rates 0.1,0.3 --seeds 0..3"});
    state_claims();
    output([this](const StudyResults& r) {
      // The name of a point in charts: "none", "dropout 0.1", "drop_key 0.1 decreasing in encoder".
      const auto name_of = [this](const Point& p) -> std::string {
        if (p[form] == Drop::none) return "none";
        return fmt::format("{} {:g}{}{}", enum_name(p[form]), p[rate],
                           p[schedule] == nn::Schedule::constant ? "" : fmt::format(" {}", enum_name(p[schedule])),
                           p[place] == Place::everywhere ? "" : fmt::format(" in {}", enum_name(p[place])));
      };
      return Section{.title = "AP of each arm",
                     .caption = "Means over the seeds with 95 % t intervals, and the single seeds.",
                     .charts = {dots_of(r, "val_ap", "AP", name_of), dots_of(r, "val_ap_50", "AP 50", name_of)}};
    });
    output(picture_section("boxes", "Objects found in validation images",
                           "White: the objects. Yellow: predictions with a probability of at least one half."));
    output(picture_section("queries", "Cross-attention of the first queries",
                           "The attention of four queries to the first of these images, in the last block, as a mean "
                           "over the heads. The box is the one that the query predicts."));
    measure_layers();
    columns({train_loss, val_loss, "val_ap", "val_ap_50", "val_ap_75", "query_spread"});
  }

  const Axis<Drop> form = axis<Drop>(
      "--forms",
      "Drops in attention: none, probabilities after the softmax (dropout), or keys before the softmax (drop_key)");
  const Axis<double> rate = axis("--rates", {0.1}, "Shares of probabilities or keys to drop").above(0).below(1);
  const Axis<nn::Schedule> schedule =
      axis("--drop-key-schedules", {nn::Schedule::constant, nn::Schedule::decreasing, nn::Schedule::increasing},
           "Schedules of DropKey's rate over the blocks of each stack");
  const Axis<Place> place = axis("--places", {Place::everywhere},
                                 "Attention that drops: everywhere, or that of the encoder, between the queries of the "
                                 "decoder, or from the decoder to the image (cross)");
  const Axis<std::string> gate = methods({"pre"}, "Residual methods of both stacks");
  DetectionOptions data;
  DetrNetwork network;
  ObjectSearch search_for_objects;
  std::string write_to;

  void state_claims() {
    using enum nn::Schedule;
    using enum Drop;
    const char* paper = "Li et al., CVPR 2023, DropKey, table of DETR";
    const Point everywhere = place == Place::everywhere, plain = schedule == constant && everywhere;
    const auto better = [&](const char* text, const Point& a, const Point& b, const Point& where) {
      claim(text, paper, higher("val_ap", a, b).at(where));
    };
    better("DropKey finds objects better than no drops", form == drop_key, form == none, plain);
    better("DropKey finds objects better than dropout of attention", form == drop_key, form == dropout, plain);
    better("dropout of attention finds objects better than no drops", form == dropout, form == none, plain);
    better("DropKey: decreasing over depth is better than constant", schedule == decreasing, schedule == constant,
           form == drop_key && everywhere);
    better("DropKey: constant over depth is better than increasing", schedule == constant, schedule == increasing,
           form == drop_key && everywhere);
    const char* poster = "Li et al., CVPR 2023, their poster (rate and schedule not stated)";
    const auto add = [&](Drop of, const char* figure, const char* source) {
      published(form == of && plain, "val_ap", figure, source);
    };
    add(none, "41.9 AP on COCO (AP50 62.1, AP75 44.2, small 20.6, medium 45.7)", poster);
    add(dropout, "42.2 AP on COCO", poster);
    add(dropout, "42.0 AP on COCO (DETR-R50 as published, 500 epochs, rate 0.1)", "facebookresearch/detr");
    add(drop_key, "42.9 AP on COCO", poster);
  }

  void train(lab::Trial& trial) const {
    const auto& detection = trial.problem<DetectionProblem>();
    nn::DetrOptions o = network.options(detection.data().train.classes(), trial[gate], trial.seed());
    const Drop drop = trial[form];
    const Place where = trial[place];
    nn::DetrDrops drops;
    if (drop == Drop::dropout) drops.dropout = trial[rate];
    if (drop == Drop::drop_key) drops.drop_key = {.rate = trial[rate], .schedule = trial[schedule]};
    if (where == Place::everywhere || where == Place::encoder) o.encoder_attention = drops;
    if (where == Place::everywhere || where == Place::decoder) o.decoder_attention = drops;
    if (where == Place::everywhere || where == Place::cross) o.cross_attention = drops;
    nn::Detr model(o);
    trial.save_under(nn::facebook_names());
    trial.train(model);
    attach_objects(trial, model);
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::detr(int argc, const char* const* argv) { return run<vision::DetrStudy>(argc, argv); }
