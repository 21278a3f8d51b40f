#include "experiments/vision/pictures/object_images.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/ops.h"
#include "core/device_lost.h"
#include "experiments/lab/plot/text.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/pictures/attention_images.h"
#include "nn/evaluation_scope.h"
#include "nn/layers/attention_maps.h"

namespace plumb::vision {
namespace {

// Draws a box of one pixel's width.
void draw_box(Pixels& image, const nn::Box& box, const std::array<std::uint8_t, 3>& colour) {
  const auto at = [](double share, std::int64_t length) {
    return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(length)), 0, length - 1);
  };
  const std::int64_t x0 = at(box.x0, image.width), x1 = at(box.x1, image.width), y0 = at(box.y0, image.height),
                     y1 = at(box.y1, image.height);
  const auto dot = [&](std::int64_t x, std::int64_t y) {
    for (std::int64_t c = 0; c < 3; ++c) image.plane(c)[y * image.width + x] = colour[static_cast<std::size_t>(c)];
  };
  for (std::int64_t x = x0; x <= x1; ++x) dot(x, y0), dot(x, y1);
  for (std::int64_t y = y0; y <= y1; ++y) dot(x0, y), dot(x1, y);
}

// The picture at the upper left of a white one of this size.
Pixels on_white(const Pixels& picture, std::int64_t height, std::int64_t width) {
  Pixels large{3, height, width, {}};
  large.bytes.assign(static_cast<std::size_t>(3 * height * width), 255);
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < picture.height; ++y)
      std::copy_n(picture.plane(c) + y * picture.width, picture.width, large.plane(c) + y * width);
  return large;
}

constexpr std::array<std::uint8_t, 3> white{255, 255, 255}, yellow{255, 220, 0};

// Makes the pictures of attach_objects().
void attach(lab::Trial& trial, nn::Detr& model) {
  constexpr std::int64_t count = 4, side = 128, longest = 480, shown_queries = 4;
  const auto& problem = trial.problem<DetectionProblem>();
  const DetectionSet& set = problem.data().validation;
  const nn::Targets targets = targets_of(set);
  const NoGrad no_grad;
  const nn::EvaluationScope scope(model);
  std::vector<Pixels> found, attention;
  // The images have no classes, so few_of() draws from all of them.
  for (const std::int64_t i : few_of(std::vector<std::int32_t>(targets.size()), std::min(count, set.size()))) {
    const nn::AttentionMaps maps(model);
    const Pixels image = fitted(set, i);
    const DetectionBatch batch = batch_of(image, problem.normalization());
    const nn::Detections predicted = model.detect(batch.images);
    Pixels large = for_people(reduced(image, longest), side), plain = large;
    for (const nn::Target& t : targets[static_cast<std::size_t>(i)]) draw_box(large, t.box, white);
    const auto objects = found_objects(predicted).front();
    for (const FoundObject& o : objects)
      if (o.score >= 0.5) draw_box(large, o.box, yellow);
    found.push_back(large);
    if (found.size() > 1) continue;
    const Tensor p = mean(maps.all().back().probabilities, {1})[0];  // [Q, h w]
    const auto [h, w] = model.grid(image.height, image.width);
    if (h != w) continue;
    for (std::int64_t q = 0; q < std::min(shown_queries, p.dim(0)); ++q) {
      Pixels picture = heat(plain, {h, p[q].values()});
      const std::vector<double> c = nn::corners_of(predicted.boxes[-1][0][q]).values();
      draw_box(picture, {c[0], c[1], c[2], c[3]}, yellow);
      attention.push_back(std::move(picture));
    }
  }
  std::int64_t height = 0, width = 0;
  for (const Pixels& p : found) height = std::max(height, p.height), width = std::max(width, p.width);
  for (Pixels& p : found) p = on_white(p, height, width);
  attach_picture(trial, "boxes", beside(found));
  if (!attention.empty()) attach_picture(trial, "queries", beside(attention));
}

}  // namespace

std::string class_name(const std::vector<std::string>& class_names, std::int64_t label) {
  return class_names.empty() ? fmt::format("class {}", label) : class_names[static_cast<std::size_t>(label)];
}

std::string objects_svg(const Pixels& original, const std::vector<FoundObject>& objects,
                        const std::vector<std::string>& class_names) {
  constexpr std::int64_t least_side = 480, most_side = 1280;  // of the longer side in the picture, in pixels
  const Pixels image = reduced(original, most_side);
  const std::int64_t longer = std::max(image.height, image.width), factor = (least_side + longer - 1) / longer;
  const auto width = static_cast<double>(image.width * factor), height = static_cast<double>(image.height * factor);
  std::string svg =
      fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
                  R"(font-family="system-ui,sans-serif" font-size="14" font-weight="600">)"
                  R"(<image width="{0}" height="{1}" style="image-rendering:{2}" href="data:image/png;base64,{3}"/>)",
                  width, height, factor > 1 ? "pixelated" : "auto", base64_png(image));
  for (auto it = objects.rbegin(); it != objects.rend(); ++it) {  // the best is drawn last, above the others
    const FoundObject& o = *it;
    const double x0 = std::clamp(o.box.x0, 0.0, 1.0) * width, x1 = std::clamp(o.box.x1, 0.0, 1.0) * width,
                 y0 = std::clamp(o.box.y0, 0.0, 1.0) * height, y1 = std::clamp(o.box.y1, 0.0, 1.0) * height;
    const std::string colour = fmt::format("hsl({},90%,62%)", (50 + o.label * 137) % 360),
                      name = class_name(class_names, o.label);
    const bool at_right = x0 > 0.7 * width;  // a text that starts here may leave the picture
    svg += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="none" stroke="{}" stroke-width="2.5"/>)"
        R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="{}" stroke="#000" stroke-width="3.5" )"
        R"(paint-order="stroke">{} {:.2f}</text>)",
        x0, y0, x1 - x0, y1 - y0, colour, at_right ? x1 : x0, y0 > 20 ? y0 - 5 : std::min(y0 + 16, height - 4),
        at_right ? "end" : "start", colour, escape_markup(name), o.score);
  }
  return svg + "</svg>\n";
}

void attach_objects(lab::Trial& trial, nn::Detr& model) {
  if (trial.has_diverged() || !is_of_first_seed(trial)) return;
  try {
    attach(trial, model);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {  // the trial keeps its measured values
    trial.note(fmt::format("no pictures of objects of {}: {}", trial.point().label(), e.what()));
  }
}

}  // namespace plumb::vision
