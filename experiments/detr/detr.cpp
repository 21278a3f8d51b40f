// Is it better to drop keys before the softmax (Li et al., CVPR 2023, DropKey) or probabilities after the softmax, in a
// detector? The program trains small DETRs without drops in attention, with dropout of the attention probabilities, and
// with DropKey, of three schedules over depth and in several places. All other dropout is the same in all arms.
#include "experiments/programs.h"

#include "experiments/detr/find_objects.h"
#include "experiments/detr/network.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/study/study.h"
#include "experiments/vision/data/shapes.h"
#include "experiments/vision/pictures/object_images.h"
#include "experiments/vision/pictures/pictures.h"
#include "experiments/vision/problem/detection_problem.h"
#include "experiments/vision/programs/published_settings.h"

using namespace plumb;

namespace {

// The name of a point in charts: "none", "dropout 0.1", "drop_key 0.1 decreasing in encoder".
std::string name_of(const lab::Point& p) {
  const std::string form = p.get<std::string>("form"), schedule = p.get<std::string>("drop_key_schedule"),
                    place = p.get<std::string>("place");
  if (form == "none") return form;
  return fmt::format("{} {:g}{}{}", form, p.get<double>("rate"), schedule == "constant" ? "" : " " + schedule,
                     place == "everywhere" ? "" : " in " + place);
}

// Sets the sizes and the training of facebookresearch/detr on COCO.
void set_facebook_detr(lab::Study& study, vision::DetectionOptions& data, vision::DetrNetwork& network) {
  const std::string main_py = "facebookresearch/detr, main.py", coco_py = "facebookresearch/detr, datasets/coco.py";
  const auto say = [&study](const std::string& source, std::initializer_list<const char*> options) {
    for (const char* option : options) vision::explain(study, option, source);
  };
  data.data = "coco", data.image_side = 1067, data.mirror = 0.5;
  say("COCO 2017", {"--data", "--train-annotations", "--train-images", "--val-annotations", "--val-images"});
  say("ours: one size, 1067 x 800 for COCO's 640 x 480, the largest of " + coco_py +
          "; DETR draws shorter sides from 480 to 800, and crops half of the images",
      {"--image-side"});
  say(coco_py, {"--mirror"});
  say("ours: all images", {"--train-count", "--val-count"});
  network = {.backbone = {64, 128, 256, 512, 512},
             .dim = 256,
             .heads = 8,
             .encoder = 6,
             .decoder = 6,
             .hidden = 2048,
             .queries = 100,
             .dropout = 0.1,
             .backbone_rate = 1};
  say(main_py, {"--dim", "--heads", "--encoder", "--decoder", "--hidden", "--queries", "--dropout"});
  say("ours: stride 32, not pretrained; DETR has a pretrained ResNet-50", {"--backbone"});
  say("ours, because the backbone is not pretrained; DETR has a tenth", {"--backbone-rate"});
  constexpr std::int64_t batch = 64, images = 118'287, epochs = 300;
  lab::StudyOptions& run = study.options();
  run.batch = batch, run.steps = epochs * (images / batch), run.warmup = 0;
  run.device = lab::DeviceChoice::automatic;
  say("facebookresearch/detr, d2/configs: 64 images; main.py has 2 on each GPU", {"--batch"});
  say(fmt::format("{}: {} epochs of {} images", main_py, epochs, images), {"--steps"});
  say(main_py + ": none", {"--warmup"});
  say("ours", {"--loss-limit", "--at-lr", "--rates-from", "--eval-every", "--control", "--dtype"});
  say("ours: published results have one seed; claims need at least three", {"--seeds"});
  lab::OptimizationOptions& o = study.optimization();
  o.lr = 1e-4, o.optimizer = lab::OptimizerKind::adamw, o.schedule = lab::ScheduleKind::step, o.weight_decay = 1e-4,
  o.clip_norm = 0.1, o.ema_decay = 0;
  say(main_py, {"--lr", "--optimizer", "--clip-norm"});
  say(main_py + "; ours decays only weights, DETR all parameters", {"--weight-decay"});
  say(main_py + ": one drop, after two thirds; ours has two, after a half and three quarters", {"--schedule"});
  say("not in DETR", {"--ema-decay"});
}

}  // namespace

int plumb::lab::detr(int argc, const char* const* argv) {
  vision::DetectionOptions data;
  vision::DetrNetwork network;
  lab::Study study("detr",
                   "Does a detector find objects better with DropKey than with dropout of attention, or with neither?");
  const auto form = study
                        .axis<std::string>("--forms", {"none", "dropout", "drop_key"},
                                           "Drops in attention: none, probabilities after the softmax (dropout), or "
                                           "keys before the softmax (drop_key)")
                        .one_of("form", {"none", "dropout", "drop_key"});
  const auto rate = study.axis<double>("--rates", {0.1}, "Shares of probabilities or keys to drop").above(0).below(1);
  const auto schedule = study
                            .axis<std::string>("--drop-key-schedules", {"constant", "decreasing", "increasing"},
                                               "Schedules of DropKey's rate over the blocks of each stack")
                            .one_of("schedule", enum_names<nn::Schedule>());
  study.one_rate_for(schedule);
  const auto place =
      study
          .axis<std::string>("--places", {"everywhere"},
                             "Attention that drops: everywhere, or that of the encoder, between the queries of "
                             "the decoder, or from the decoder to the image (cross)")
          .one_of("place", {"everywhere", "encoder", "decoder", "cross"});
  const auto gate =
      study.axis<std::string>("--gates", {"pre"}, "Residual methods of both stacks").one_of_methods("gate");
  study.only([&](const lab::Point& p) {
    const std::string of = p.get<std::string>("form");
    const bool first_schedule = p.get<std::string>("drop_key_schedule") == schedule.values().front(),
               first_place = p.get<std::string>("place") == place.values().front(),
               first_rate = p.get<double>("rate") == rate.values().front();
    if (of == "none") return first_schedule && first_place && first_rate;
    return of == "drop_key" || first_schedule;
  });
  lab::Cli& cli = study.cli();
  data.declare(cli);
  network.declare(cli);
  study.problem([&](const lab::StudyOptions& options) {
    return std::make_unique<vision::DetectionProblem>(data, network.options(1, "pre", 0), options);
  });
  vision::ObjectSearch search;
  search.declare(cli);
  std::string write_to;
  cli.section(lab::Cli::instead);
  cli.option(
         "--write-data", &write_to,
         "Write the images of the data set shapes to DIR/train and DIR/val as files in COCO's format; train nothing")
      .path("DIR")
      .scope(lab::Scope::call);
  cli.action([&]() -> std::optional<int> {
    if (search.given()) return search.run(study.options());
    if (write_to.empty()) return std::nullopt;
    const vision::DetectionData set = vision::shapes();
    vision::write_coco(set.train, write_to + "/train");
    vision::write_coco(set.validation, write_to + "/val");
    fmt::print("{} training images in {}/train, {} validation images in {}/val\n", set.train.size(), write_to,
               set.validation.size(), write_to);
    return 0;
  });
  study.judging().control = "form none";
  study.options().steps = 6000, study.options().warmup = 300, study.options().batch = 32;
  study.optimization().lr = 1e-3, study.optimization().weight_decay = 1e-4, study.optimization().clip_norm = 0.1;
  study.choose_rates_by("val_loss", lab::Better::lower);
  cli.preset(
      "quick",
      "without drops, with dropout and with DropKey on shapes, one seed, 3,000 steps (three minutes on two cores)",
      [&] {
        schedule.set({"constant"});
        study.options().steps = 3000;
      });
  cli.preset("cpu", "the five arms of the paper's table on shapes, each at its own rate, 12 judged seeds, 6,000 steps",
             [&] { study.options().judge_seeds(12); });
  cli.preset("places", "DropKey everywhere and in one kind of attention only, as in the preset cpu", [&] {
    form.set({"none", "drop_key"}), schedule.set({"constant"}),
        place.set({"everywhere", "encoder", "decoder", "cross"});
    study.options().judge_seeds(12);
  });
  cli.preset("paper", "the sizes and the training of DETR on COCO; needs the files of COCO and a GPU", [&] {
    set_facebook_detr(study, data, network);
    schedule.set({"constant"}), rate.set({0.1}), gate.set({"post"});
    vision::explain(study, "--forms", "Li et al., CVPR 2023, DropKey, table of DETR");
    vision::explain(study, "--rates", "ours: DETR's rate of dropout; the paper's rate of DropKey is not known to us");
    vision::explain(study, "--drop-key-schedules", "ours: the paper's schedule is not known to us");
    vision::explain(study, "--places", "ours: as DETR's dropout of attention");
    vision::explain(study, "--gates", "facebookresearch/detr, main.py: normalize_before is off");
  });
  cli.example("--preset quick");
  cli.example("--forms none,drop_key --places everywhere,encoder,cross --rates 0.1,0.3 --seeds 0..3");
  const char* paper = "Li et al., CVPR 2023, DropKey, table of DETR";
  const auto higher = [&](const lab::Point& a, const lab::Point& b, const lab::Point& where) {
    return lab::higher("val_ap", a, b).at(where);
  };
  study.claim(
      "DropKey finds objects better than no drops", paper,
      higher({{"form", "drop_key"}}, {{"form", "none"}}, {{"drop_key_schedule", "constant"}, {"place", "everywhere"}}));
  study.claim("DropKey finds objects better than dropout of attention", paper,
              higher({{"form", "drop_key"}}, {{"form", "dropout"}},
                     {{"drop_key_schedule", "constant"}, {"place", "everywhere"}}));
  study.claim(
      "dropout of attention finds objects better than no drops", paper,
      higher({{"form", "dropout"}}, {{"form", "none"}}, {{"drop_key_schedule", "constant"}, {"place", "everywhere"}}));
  study.claim("DropKey: decreasing over depth is better than constant", paper,
              higher({{"drop_key_schedule", "decreasing"}}, {{"drop_key_schedule", "constant"}},
                     {{"form", "drop_key"}, {"place", "everywhere"}}));
  study.claim("DropKey: constant over depth is better than increasing", paper,
              higher({{"drop_key_schedule", "constant"}}, {{"drop_key_schedule", "increasing"}},
                     {{"form", "drop_key"}, {"place", "everywhere"}}));
  const auto published = [&](const char* of, const char* figure, const char* source) {
    study.published({{"form", of}, {"drop_key_schedule", "constant"}, {"place", "everywhere"}}, "val_ap", figure,
                    source);
  };
  const char* poster = "Li et al., CVPR 2023, their poster (rate and schedule not stated)";
  published("none", "41.9 AP on COCO (AP50 62.1, AP75 44.2, small 20.6, medium 45.7)", poster);
  published("dropout", "42.2 AP on COCO", poster);
  published("dropout", "42.0 AP on COCO (DETR-R50 as published, 500 epochs, rate 0.1)", "facebookresearch/detr");
  published("drop_key", "42.9 AP on COCO", poster);
  study.output([](const lab::StudyResults& r) {
    return lab::Section{
        .title = "AP of each arm",
        .caption = "Means over the seeds with 95 % t intervals, and the single seeds.",
        .charts = {lab::dots_of(r, "val_ap", "AP", name_of), lab::dots_of(r, "val_ap_50", "AP 50", name_of)}};
  });
  study.output([](const lab::StudyResults& r) {
    return vision::picture_section(r, "boxes", "Objects found in validation images",
                                   "White: the objects. Yellow: predictions with a probability of at least one half.");
  });
  study.output([](const lab::StudyResults& r) {
    return vision::picture_section(
        r, "queries", "Cross-attention of the first queries",
        "The attention of four queries to the first of these images, in the last block, as a "
        "mean over the heads. The box is the one that the query predicts.");
  });
  study.output({"layers.csv", lab::layers_csv});
  study.columns({"train_loss", "val_loss", "val_ap", "val_ap_50", "val_ap_75", "query_spread"});
  study.show({"train_loss", "val_ap", "val_ap_50", "query_spread"});
  return study.run(argc, argv, [&](lab::Trial& trial) {
    const auto& problem = trial.problem<vision::DetectionProblem>();
    nn::DetrOptions o = network.options(problem.data().train.classes(), trial[gate], trial.seed());
    const std::string form_name = trial[form], where = trial[place];
    const nn::DropKey drop_key{.rate = trial[rate], .schedule = enum_named<nn::Schedule>("schedule", trial[schedule])};
    const nn::DetrDrops drops = form_name == "dropout"    ? nn::DetrDrops{.dropout = drop_key.rate}
                                : form_name == "drop_key" ? nn::DetrDrops{.drop_key = drop_key}
                                                          : nn::DetrDrops{};
    if (where == "everywhere" || where == "encoder") o.encoder_attention = drops;
    if (where == "everywhere" || where == "decoder") o.decoder_attention = drops;
    if (where == "everywhere" || where == "cross") o.cross_attention = drops;
    nn::Detr model(o);
    trial.save_under(nn::facebook_names());
    trial.train(model, lab::record_layers(trial, model.decoder()));
    vision::attach_objects(trial, model);
  });
}
