#include "experiments/vision/programs/predictions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/error.h"
#include "experiments/lab/plot/draw.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/report/page.h"

namespace plumb::vision {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

// The largest number of classes in a matrix, and of lines in a table on the terminal.
constexpr std::size_t most_rows = 20;
constexpr std::size_t most_pairs = 30;

std::string name_of(const EvaluationFacts& facts, std::int64_t label) {
  return facts.names.empty() ? "" : facts.names[static_cast<std::size_t>(label)];
}

// The name of a class in tables: "tabby (281)", or "class 281" if the classes have no names.
std::string class_text(const EvaluationFacts& facts, std::int64_t label) {
  return facts.names.empty() ? fmt::format("class {}", label) : fmt::format("{} ({})", name_of(facts, label), label);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The wrong class that is predicted most often for images of `label`, with its number of images: "five (5): 3".
std::string most_confused(const EvaluationFacts& facts, const Scores& scores, std::int64_t label) {
  std::int64_t most = 0, with = 0;
  for (auto it = scores.confusion.lower_bound({label, 0}); it != scores.confusion.end() && it->first.first == label;
       ++it)
    if (it->first.second != label && it->second > most) most = it->second, with = it->first.second;
  return most == 0 ? "" : fmt::format("{}: {}", class_text(facts, with), most);
}

// A table with a row for each class. If there are more than `most` classes, the table has the classes with the lowest
// accuracy.
TextTable class_table(const EvaluationFacts& facts, const Scores& scores, std::size_t most) {
  std::vector<std::int64_t> labels;
  for (const auto& [label, count] : scores.by_class) labels.push_back(label);
  if (labels.size() > most) {
    std::ranges::stable_sort(labels, {}, [&](std::int64_t label) { return scores.by_class.at(label).accuracy(); });
    labels.resize(most);
  }
  TextTable table;
  table.column("class", Align::left);
  for (const char* title : {"images", "right", "accuracy", "loss"}) table.column(title, Align::right);
  table.column("most often predicted as", Align::left);
  for (const std::int64_t label : labels) {
    const Scores::Count& of = scores.by_class.at(label);
    table.row({class_text(facts, label), std::to_string(of.images), std::to_string(of.right), percent(of.accuracy()),
               fmt::format("{:.4f}", of.loss), most_confused(facts, scores, label)});
  }
  return table;
}

HeatMap confusion_map(const EvaluationFacts& facts, const Scores& scores) {
  const std::vector<std::int64_t> classes = scores.classes();
  HeatMap map{.id = "confusion", .title = "Confusion matrix", .columns_title = "predicted"};
  for (const std::int64_t label : classes) {
    map.rows.push_back(facts.names.empty() ? class_text(facts, label)
                                           : fmt::format("{} {}", label, name_of(facts, label)));
    map.columns.emplace_back("", std::to_string(label));
    const auto found = scores.by_class.find(label);
    for (const std::int64_t predicted : classes) {
      const std::int64_t count = scores.confused(label, predicted),
                         images = found == scores.by_class.end() ? 0 : found->second.images;
      map.cells.push_back({.value = static_cast<double>(count),
                           .strength = images == 0 ? 0 : static_cast<double>(count) / static_cast<double>(images),
                           .text = std::to_string(count),
                           .title = fmt::format("{}, predicted {}: {} of {}", class_text(facts, label),
                                                class_text(facts, predicted), count, images)});
    }
  }
  map.legend = "A row for each true class. Numbers count images; colours show their share of the images of the class.";
  return map;
}

TextTable confused_pairs(const EvaluationFacts& facts, const Scores& scores) {
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> pairs;
  for (const auto& pair : scores.confusion)
    if (pair.first.first != pair.first.second) pairs.push_back(pair);
  std::ranges::stable_sort(pairs, std::greater<>(), &decltype(pairs)::value_type::second);
  pairs.resize(std::min(pairs.size(), most_pairs));
  TextTable table;
  table.column("class", Align::left), table.column("predicted as", Align::left);
  table.column("images", Align::right), table.column("share of the class", Align::right);
  for (const auto& [pair, count] : pairs)
    table.row({class_text(facts, pair.first), class_text(facts, pair.second), std::to_string(count),
               percent(static_cast<double>(count) / static_cast<double>(scores.by_class.at(pair.first).images))});
  return table;
}

Json json_of(const Scores::Count& count) {
  return {{"images", count.images},
          {"right", count.right},
          {"accuracy", count.accuracy()},
          {"accuracy_5", count.accuracy_5()},
          {"loss", count.loss}};
}

const std::vector<std::string> count_columns{"images", "right", "accuracy", "accuracy_5", "loss"};

void end_row(CsvTable& table, const Scores::Count& count) {
  table.cell(count.images).cell(count.right).cell(count.accuracy()).cell(count.accuracy_5()).cell(count.loss);
  table.end_row();
}

}  // namespace

Prediction prediction_of(std::span<const double> logits, std::optional<std::int64_t> label, std::string image,
                         std::int64_t number) {
  check(std::ranges::all_of(logits, [](double v) { return std::isfinite(v); }),
        "{}: the model gives probabilities that are not finite; check the weights and the normalization of the images",
        image);
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double v : logits) sum += std::exp(v - largest);
  const double log_sum = std::log(sum);  // relative to the largest logit, like `logit`
  Prediction prediction{.image = std::move(image), .number = number, .label = label};
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = std::min(top_classes, order.size());
  const auto logit = [&](std::int64_t c) { return logits[static_cast<std::size_t>(c)] - largest; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::int64_t a, std::int64_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  for (std::size_t k = 0; k < count; ++k) prediction.top.emplace_back(order[k], std::exp(logit(order[k]) - log_sum));
  if (label) prediction.loss = log_sum - logit(*label);
  return prediction;
}

std::vector<std::int64_t> Scores::classes() const {
  std::set<std::int64_t> found;
  for (const auto& [pair, count] : confusion) found.insert({pair.first, pair.second});
  return {found.begin(), found.end()};
}

std::int64_t Scores::confused(std::int64_t label, std::int64_t predicted) const {
  const auto found = confusion.find({label, predicted});
  return found == confusion.end() ? 0 : found->second;
}

Scores scores_of(const std::vector<Prediction>& predictions) {
  Scores scores;
  for (const Prediction& p : predictions) {
    if (!p.label) continue;
    for (Scores::Count* count : {&scores.all, &scores.by_class[*p.label]}) {
      ++count->images;
      count->right += p.first() == *p.label;
      count->among += std::ranges::any_of(p.top, [&](const auto& of) { return of.first == *p.label; });
      count->loss += *p.loss;
    }
    ++scores.confusion[{*p.label, p.first()}];
  }
  const auto to_mean = [](Scores::Count& count) {
    count.loss /= static_cast<double>(std::max<std::int64_t>(count.images, 1));
  };
  to_mean(scores.all);
  for (auto& [label, count] : scores.by_class) to_mean(count);
  return scores;
}

std::vector<std::size_t> spread_over_classes(const std::vector<Prediction>& predictions, std::size_t most) {
  std::map<std::pair<bool, std::int64_t>, std::vector<std::size_t>>
      by_class;  // key: whether the label is missing, and the label
  for (std::size_t i = 0; i < predictions.size(); ++i)
    by_class[{!predictions[i].label, predictions[i].label.value_or(0)}].push_back(i);
  std::vector<const std::vector<std::size_t>*> classes;
  for (const auto& [label, images] : by_class) classes.push_back(&images);
  std::vector<std::size_t> chosen;
  if (classes.size() > most) {
    for (std::size_t k = 0; k < most; ++k) chosen.push_back(classes[k * classes.size() / most]->front());
  } else {
    const std::size_t count = std::min(most, predictions.size());
    for (std::size_t turn = 0; chosen.size() < count; ++turn)
      for (const auto* images : classes)
        if (turn < images->size() && chosen.size() < count) chosen.push_back((*images)[turn]);
  }
  std::ranges::sort(chosen);
  return chosen;
}

std::string predictions_text(const EvaluationFacts& facts, const std::vector<Prediction>& predictions) {
  std::string text;
  for (const Prediction& p : predictions) {
    if (!facts.in_files) break;
    text += p.image + "\n";
    for (const auto& [label, probability] : p.top)
      text += fmt::format("  {:5.1f} %  {}\n", 100 * probability, class_text(facts, label));
  }
  const Scores scores = scores_of(predictions);
  if (scores.all.images == 0) return text;
  text += fmt::format(
      "{} images {}: the likeliest class is right for {} ({}), one of the {} likeliest for {} ({}); mean loss "
      "{:.4f}\n",
      scores.all.images, facts.in_files ? "in folders named as classes" : "of " + facts.data, scores.all.right,
      percent(scores.all.accuracy()), predictions.front().top.size(), scores.all.among,
      percent(scores.all.accuracy_5()), scores.all.loss);
  text += "\n" + class_table(facts, scores, most_rows).text(false);
  if (scores.by_class.size() > most_rows)
    text += fmt::format("these are the {} classes with the lowest accuracy; all {} are in classes.csv\n", most_rows,
                        scores.by_class.size());
  return text;
}

std::string predictions_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions) {
  Json all = Json::array();
  for (const Prediction& p : predictions) {
    Json top = Json::array();
    for (const auto& [label, probability] : p.top)
      top.push_back({{"class", label}, {"name", name_of(facts, label)}, {"probability", probability}});
    all.push_back({{"file", p.image},
                   {"label", p.label ? Json(*p.label) : Json()},
                   {"loss", p.loss ? Json(*p.loss) : Json()},
                   {"top", top},
                   {"picture", p.picture}});
  }
  return json_text(all, 2);
}

std::string scores_json(const EvaluationFacts& facts, const std::vector<Prediction>& predictions) {
  const Scores scores = scores_of(predictions);
  Json json = {{"weights", facts.weights}, {"data", facts.data}};
  json.update(json_of(scores.all));
  json["classes"] = Json::array();
  for (const auto& [label, count] : scores.by_class) {
    Json of = {{"class", label}, {"name", name_of(facts, label)}};
    of.update(json_of(count));
    json["classes"].push_back(of);
  }
  const std::vector<std::int64_t> classes = scores.classes();
  Json counts = Json::array();
  for (const std::int64_t label : classes) {
    counts.push_back(Json::array());
    for (const std::int64_t predicted : classes) counts.back().push_back(scores.confused(label, predicted));
  }
  json["confusion"] = {{"classes", classes}, {"counts", counts}};
  json["pictures"] = Json::array();
  for (const Prediction& p : predictions)
    if (!p.picture.empty())
      json["pictures"].push_back({{"image", p.image},
                                  {"label", p.label ? Json(*p.label) : Json()},
                                  {"predicted", p.first()},
                                  {"picture", p.picture}});
  return json_text(json, -1);
}

std::map<std::string, std::string> predictions_csv(const EvaluationFacts& facts,
                                                   const std::vector<Prediction>& predictions) {
  CsvTable images({"image", "label", "predicted", "probability", "loss", "picture"});
  for (const Prediction& p : predictions) {
    images.cell(p.image).cell(p.label ? std::to_string(*p.label) : "").cell(p.first()).cell(p.top.front().second);
    images.cell(p.loss ? fmt::format("{}", *p.loss) : "").cell(p.picture).end_row();
  }
  const Scores scores = scores_of(predictions);
  if (scores.all.images == 0) return {{"images.csv", images.text()}};
  const auto with_columns = [](std::vector<std::string> header, const auto& columns) {
    for (const auto& column : columns) header.push_back(fmt::format("{}", column));
    return CsvTable(header);
  };
  CsvTable all(count_columns), by_class = with_columns({"class", "name"}, count_columns),
                               confusion = with_columns({"class", "name"}, scores.classes());
  end_row(all, scores.all);
  for (const auto& [label, count] : scores.by_class) end_row(by_class.cell(label).cell(name_of(facts, label)), count);
  for (const std::int64_t label : scores.classes()) {
    confusion.cell(label).cell(name_of(facts, label));
    for (const std::int64_t predicted : scores.classes()) confusion.cell(scores.confused(label, predicted));
    confusion.end_row();
  }
  return {{"images.csv", images.text()},
          {"scores.csv", all.text()},
          {"classes.csv", by_class.text()},
          {"confusion.csv", confusion.text()}};
}

Report predictions_report(const EvaluationFacts& facts, const std::vector<Prediction>& predictions,
                          const std::vector<Picture>& pictures) {
  const Scores scores = scores_of(predictions);
  Report report;
  Gallery gallery(report.figures);
  std::string html =
      lab::facts({{"Weights", facts.weights},
                  {"Network", facts.network},
                  {"Images", fmt::format("{}: {}", facts.data, scores.all.images)},
                  {"Mean loss", fmt::format("{:.4f} nats; chance is ln {} = {:.4f}", scores.all.loss, facts.classes,
                                            std::log(static_cast<double>(facts.classes)))},
                  {"Accuracy", percent(scores.all.accuracy())},
                  {fmt::format("Among {}", std::min<std::int64_t>(facts.classes, top_classes)),
                   percent(scores.all.accuracy_5())}});
  html += section({.title = "By class",
                   .caption = "Accuracy is the share of images of the class that are predicted as it. Loss is the mean "
                              "cross-entropy in nats. Click on a column heading to sort.",
                   .table = class_table(facts, scores, scores.by_class.size())},
                  gallery);
  const bool small = scores.classes().size() <= most_rows;
  Section confusion{.title = "Confusion",
                    .caption = "All classes that occur as true or predicted classes. confusion.csv has the numbers."};
  if (small)
    confusion.charts.push_back(figure_of(confusion_map(facts, scores)));
  else
    confusion.caption = "The most frequently confused pairs of classes. confusion.csv has all pairs.",
    confusion.table = confused_pairs(facts, scores);
  html += section(confusion, gallery);
  html +=
      section({.title = "Pictures",
               .caption = "Images of all classes in turn: the input of the network, and the attention from which the "
                          "class is predicted. The largest weight is yellow.",
               .pictures = pictures},
              gallery);
  report.html = page("Evaluation of " + facts.weights, html);
  return report;
}

std::string prediction_title(const EvaluationFacts& facts, const Prediction& p) {
  const auto name = [&](std::int64_t label) {
    return facts.names.empty() ? class_text(facts, label) : name_of(facts, label);
  };
  const std::string chance = percent(p.top.front().second);
  if (!p.label) return fmt::format("{}: {}, {}", p.image, name(p.first()), chance);
  return *p.label == p.first() ? fmt::format("{}: right, {}", name(*p.label), chance)
                               : fmt::format("{}: predicted as {}, {}", name(*p.label), name(p.first()), chance);
}

}  // namespace plumb::vision
