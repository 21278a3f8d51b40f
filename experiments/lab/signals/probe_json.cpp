#include "experiments/lab/signals/probe_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/one_line.h"
#include "experiments/lab/record/record.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* name;
  double BranchStats::*required = nullptr;
  std::optional<double> BranchStats::*optional = nullptr;
};
constexpr Column columns[] = {{"stream_norm", &BranchStats::stream_norm},
                              {"branch_norm", &BranchStats::branch_norm},
                              {"ratio", &BranchStats::ratio},
                              {"cosine", &BranchStats::cosine},
                              {"mean_square", &BranchStats::mean_square},
                              {"predicted_mean_square", &BranchStats::predicted_mean_square},
                              {"gate_mean", nullptr, &BranchStats::gate_mean},
                              {"gate_min", nullptr, &BranchStats::gate_min},
                              {"gate_max", nullptr, &BranchStats::gate_max},
                              {"grad_norm", &BranchStats::grad_norm},
                              {"update", nullptr, &BranchStats::update},
                              {"entropy", nullptr, &BranchStats::entropy},
                              {"relative_entropy", nullptr, &BranchStats::relative_entropy},
                              {"largest_logit", nullptr, &BranchStats::largest_logit},
                              {"change", &BranchStats::change},
                              {"drop_ratio", nullptr, &BranchStats::drop_ratio},
                              {"empty_rows", nullptr, &BranchStats::empty_rows}};

double value_of(const BranchStats& row, const Column& c) {
  return c.required ? row.*c.required : (row.*c.optional).value_or(unknown);
}

double number(const Json& json) { return json.is_null() ? unknown : json.get<double>(); }
Json finite_or_null(double v) { return std::isfinite(v) ? Json(v) : Json(); }

}  // namespace

const std::vector<std::string>& branch_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& c : columns) all.emplace_back(c.name);
    return all;
  }();
  return names;
}

double value_of(const BranchStats& row, std::string_view name) {
  const auto column = std::ranges::find(columns, name, [](const Column& c) { return std::string_view(c.name); });
  internal_check(column != std::end(columns), "no column {} of a branch", name);
  return value_of(row, *column);
}

Json to_json(const LayerStats& layers) {
  Json branches{{"block", Json::array()}, {"branch", Json::array()}, {"norm", Json::array()}};
  for (const BranchStats& row : layers.branches) {
    branches["block"].push_back(row.block);
    branches["branch"].push_back(row.branch);
    branches["norm"].push_back(enum_name(row.norm));
  }
  for (const Column& c : columns) {
    branches[c.name] = Json::array();
    for (const BranchStats& row : layers.branches) branches[c.name].push_back(finite_or_null(value_of(row, c)));
  }
  return {{"growth", enum_name(layers.growth)},
          {"sample", std::vector<std::int64_t>(layers.sample.begin(), layers.sample.end())},
          {"input_mean_square", finite_or_null(layers.input_mean_square)},
          {"branches", std::move(branches)}};
}

LayerStats layers_from_json(const Json& json) {
  try {
    LayerStats layers{.growth = enum_named<nn::Growth>("growth", json.at("growth")),
                      .sample = Shape(json.at("sample").get<std::vector<std::int64_t>>()),
                      .input_mean_square = number(json.at("input_mean_square"))};
    const Json &branches = json.at("branches"), &norms = branches.at("norm");
    layers.branches.resize(norms.size());
    for (std::size_t i = 0; i < norms.size(); ++i) {
      BranchStats& row = layers.branches[i];
      row.block = branches.at("block").at(i);
      check(row.block >= 0 && row.block < std::ssize(norms), "block {} of {} branches", row.block, norms.size());
      row.branch = printable(branches.at("branch").at(i).get<std::string>());
      row.norm = enum_named<nn::Norm>("norm", norms[i]);
      for (const Column& c : columns) {
        const Json& cell = branches.at(c.name).at(i);
        if (c.required)
          row.*c.required = number(cell);
        else if (!cell.is_null())
          row.*c.optional = cell.get<double>();
      }
    }
    check(!layers.branches.empty(), "no blocks");
    return layers;
  } catch (const std::exception& e) {
    fail(fmt::format("expected layer statistics as one JSON object ({})", e.what()));
  }
}

}  // namespace plumb::lab
