#include "experiments/vision/pictures/attention_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/device_lost.h"
#include "core/error.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/study.h"
#include "nn/evaluation_scope.h"

namespace plumb::vision {
namespace {

// The weights of the keys that are patches: all keys, or all keys after the class token.
PatchWeights patches_of(const std::vector<double>& row) {
  const auto keys = std::ssize(row);
  for (const std::int64_t first : {0, 1}) {
    const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(keys - first))));
    if (side > 0 && side * side == keys - first) return {side, {row.begin() + first, row.end()}};
  }
  fail(fmt::format("[attention] expected keys of a square grid of patches, got {}", keys));
}

// Row `query` of a matrix [queries, keys], or the mean of all rows if `query` is negative.
std::vector<double> row_of(const std::vector<double>& values, std::int64_t queries, std::int64_t keys,
                           std::int64_t query) {
  std::vector<double> row(static_cast<std::size_t>(keys), 0);
  const std::int64_t first = query < 0 ? 0 : query, last = query < 0 ? queries : query + 1;
  for (std::int64_t q = first; q < last; ++q)
    for (std::int64_t k = 0; k < keys; ++k)
      row[static_cast<std::size_t>(k)] += values[static_cast<std::size_t>(q * keys + k)];
  for (double& v : row) v /= static_cast<double>(last - first);
  return row;
}

bool has_class_token(std::int64_t tokens) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(tokens))));
  return side * side != tokens;
}

std::string base64(const std::string& bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? letters[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::array<double, 3> colour(double v) {
  constexpr std::array<std::array<double, 3>, 5> stops{
      {{0, 0, 0}, {90, 20, 110}, {200, 45, 60}, {250, 150, 30}, {255, 245, 150}}};
  const double at = std::clamp(v, 0.0, 1.0) * (stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  std::array<double, 3> c{};
  for (std::size_t k = 0; k < 3; ++k)
    c[k] = stops[i][k] + (at - static_cast<double>(i)) * (stops[i + 1][k] - stops[i][k]);
  return c;
}

}  // namespace

std::vector<PatchWeights> attention_by_head(const nn::AttentionMap& map, std::int64_t sample, std::int64_t query) {
  const Tensor& p = map.probabilities;
  const std::int64_t heads = p.dim(1), queries = p.dim(2), keys = p.dim(3),
                     token = queries > 1 && has_class_token(queries);
  check(query < queries - token, "[attention] expected a patch from 0 to {}, got {}", queries - token - 1, query);
  const std::int64_t row = queries == 1 || (token && query < 0) ? 0 : query < 0 ? -1 : query + token;
  std::vector<PatchWeights> all;
  for (std::int64_t h = 0; h < heads; ++h) {
    std::vector<double> values = slice(slice(p, 0, sample, sample + 1), 1, h, h + 1).values();
    for (double& v : values) v = std::abs(v);  // talking heads may give a key a negative weight
    all.push_back(patches_of(row_of(values, queries, keys, row)));
  }
  return all;
}

PatchWeights attention_of_class(const std::vector<nn::AttentionMap>& maps, std::int64_t sample) {
  check(!maps.empty(), "[attention] expected a pass of a model with attention, got none");
  const std::vector<PatchWeights> heads = attention_by_head(maps.back(), sample);
  PatchWeights mean = heads.front();
  for (std::size_t h = 1; h < heads.size(); ++h)
    for (std::size_t i = 0; i < mean.values.size(); ++i) mean.values[i] += heads[h].values[i];
  for (double& v : mean.values) v /= static_cast<double>(heads.size());
  return mean;
}

PatchWeights rolled_out(const std::vector<nn::AttentionMap>& maps, std::int64_t sample) {
  const Tensor all = nn::rollout(maps);  // [B, queries, keys]
  const std::int64_t queries = all.dim(1), keys = all.dim(2);
  std::vector<double> values = slice(all, 0, sample, sample + 1).values();
  PatchWeights weights = patches_of(row_of(values, queries, keys, queries == 1 || has_class_token(queries) ? 0 : -1));
  const double least = *std::ranges::min_element(weights.values);
  for (double& v : weights.values) v -= least;
  return weights;
}

Pixels for_people(const Pixels& image, std::int64_t side) {
  const std::int64_t times =
      std::max<std::int64_t>(1, (side + std::min(image.height, image.width) - 1) / std::min(image.height, image.width));
  Pixels large{3, times * image.height, times * image.width, {}};
  large.bytes.resize(static_cast<std::size_t>(3 * large.height * large.width));
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < large.height; ++y)
      for (std::int64_t x = 0; x < large.width; ++x)
        large.plane(c)[y * large.width + x] =
            image.plane(image.channels == 3 ? c : 0)[y / times * image.width + x / times];
  return large;
}

Pixels heat(const Pixels& image, const PatchWeights& weights) {
  check(image.channels == 3, "[heat] expected red, green and blue, got {} channels", image.channels);
  Pixels result = image;
  const double most = std::max(*std::ranges::max_element(weights.values), 1e-300);
  const std::int64_t n = weights.side;
  // The position of a pixel in patches. 0 is the centre of the first patch.
  const auto place = [n](std::int64_t pixel, std::int64_t size) {
    return std::clamp((static_cast<double>(pixel) + 0.5) * static_cast<double>(n) / static_cast<double>(size) - 0.5,
                      0.0, static_cast<double>(n - 1));
  };
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const double v = place(y, image.height), u = place(x, image.width);
      const auto top = std::min(static_cast<std::int64_t>(v), std::max<std::int64_t>(n - 2, 0)),
                 left = std::min(static_cast<std::int64_t>(u), std::max<std::int64_t>(n - 2, 0));
      const std::int64_t below = std::min(top + 1, n - 1), right = std::min(left + 1, n - 1);
      const auto at = [&](std::int64_t row, std::int64_t column) {
        return weights.values[static_cast<std::size_t>(row * n + column)] / most;
      };
      const double dy = v - static_cast<double>(top), dx = u - static_cast<double>(left);
      const double w = (1 - dy) * ((1 - dx) * at(top, left) + dx * at(top, right)) +
                       dy * ((1 - dx) * at(below, left) + dx * at(below, right));
      const std::array<double, 3> c = colour(w);
      for (std::int64_t k = 0; k < 3; ++k) {
        std::uint8_t& byte = result.plane(k)[y * image.width + x];
        byte = static_cast<std::uint8_t>(
            std::lround(std::min(255.0, 0.4 * byte * (1 - 0.5 * w) + 0.75 * c[static_cast<std::size_t>(k)])));
      }
    }
  return result;
}

Pixels beside(const std::vector<Pixels>& pictures, std::int64_t in_a_row, std::int64_t gap) {
  check(!pictures.empty(), "[beside] expected at least one picture, got none");
  const Pixels& first = pictures.front();
  const auto count = std::ssize(pictures);
  const std::int64_t columns = in_a_row > 0 ? std::min<std::int64_t>(in_a_row, count) : count,
                     rows = (count + columns - 1) / columns;
  Pixels all{first.channels, rows * (first.height + gap) - gap, columns * (first.width + gap) - gap, {}};
  all.bytes.assign(static_cast<std::size_t>(all.channels * all.height * all.width), 255);
  for (std::int64_t i = 0; i < count; ++i) {
    const Pixels& p = pictures[static_cast<std::size_t>(i)];
    check(p.channels == first.channels && p.height == first.height && p.width == first.width,
          "[beside] expected pictures of {} x {}, got {} x {}", first.height, first.width, p.height, p.width);
    const std::int64_t top = i / columns * (first.height + gap), left = i % columns * (first.width + gap);
    for (std::int64_t c = 0; c < p.channels; ++c)
      for (std::int64_t y = 0; y < p.height; ++y)
        std::copy_n(p.plane(c) + y * p.width, p.width, all.plane(c) + (top + y) * all.width + left);
  }
  return all;
}

bool is_of_first_seed(const lab::Trial& trial) {
  return static_cast<std::int64_t>(trial.seed()) == trial.options().seeds.front();
}

std::string base64_png(const Pixels& picture) { return base64(png(picture)); }

Picture titled(const std::string& title, const Pixels& picture) { return {title, base64_png(picture)}; }

void attach_picture(lab::Trial& trial, const std::string& name, const Pixels& picture) {
  trial.attach(nlohmann::json{{name, base64_png(picture)}}.dump());
}

void attach_attention(lab::Trial& trial, nn::Classifier& model) {
  if (trial.has_diverged() || !is_of_first_seed(trial)) return;
  constexpr std::int64_t count = 4, side = 96;
  const ImageSet& set = vision::images(trial).data().validation;
  const NoGrad no_grad;
  const nn::EvaluationScope scope(model);
  try {
    std::vector<Pixels> pictures;
    for (const std::int64_t i : few_of(set.labels, std::min(count, set.size()))) {  // one at a time, to save memory
      const nn::AttentionMaps maps(model);
      model(to_tensors(evaluation_batch(set, vision::images(trial).normalization(), i, 1), set).images);
      const Pixels image = for_people(fitted(set, i), side);
      pictures.insert(pictures.end(),
                      {image, heat(image, attention_of_class(maps.all(), 0)), heat(image, rolled_out(maps.all(), 0))});
    }
    attach_picture(trial, "attention", beside(pictures, 6));
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {  // the trial keeps its measured values
    trial.note(fmt::format("no attention picture of {}: {}", trial.point().label(), e.what()));
  }
}

}  // namespace plumb::vision
