#include "experiments/deep_mlp/records.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "experiments/common/progress.h"
#include "experiments/common/statistics.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::ptrdiff_t averaged_steps = 20;  // of last_loss

double mean_of(std::vector<double>::const_iterator first, std::vector<double>::const_iterator last) {
  return first == last ? nan : std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

Json to_json(const JacobianMeasure& m) { return {{"value", m.value}, {"standard_error", m.standard_error}, {"exact", m.exact}}; }

double number(const Json& json) { return json.is_null() ? nan : json.get<double>(); }

JacobianMeasure measure_from(const Json& json) { return {number(json.at("value")), number(json.at("standard_error")), json.at("exact").get<bool>()}; }

MlpRecord record_from(const Json& json) {
  MlpRecord r{.arm = {json.at("method").get<std::string>(), json.at("depth").get<std::int64_t>(), json.at("seed").get<std::uint64_t>()},
              .diverged = json.at("diverged").get<bool>(),
              .losses = {},
              .start = measure_from(json.at("jacobian_start")),
              .end = measure_from(json.at("jacobian_end")),
              .seconds = json.at("seconds").get<double>()};
  for (const Json& loss : json.at("losses")) r.losses.push_back(number(loss));
  return r;
}

std::string cell(double value) { return std::isfinite(value) ? fmt::format(",{}", value) : ","; }

// "1.234 ± 0.05", as many digits after the point as keep four of the mean.
std::string text_of(const Summary& s) {
  if (s.n == 0) return "–";
  const bool wide = std::abs(s.mean) >= 1e5 || (s.mean != 0 && std::abs(s.mean) < 1e-3);
  const int decimals = std::clamp(3 - static_cast<int>(std::floor(std::log10(std::max(std::abs(s.mean), 1e-3)))), 0, 4);
  const auto shown = [&](double v) { return wide ? fmt::format("{:.3g}", v) : fmt::format("{:.{}f}", v, decimals); };
  return shown(s.mean) + (s.half_width ? " ± " + shown(*s.half_width) : "");
}

}  // namespace

std::string MlpArm::label() const { return fmt::format("{} depth {} seed {}", method, depth, seed); }

double MlpRecord::epoch_loss(std::int64_t epoch, std::int64_t steps_per_epoch) const {
  const auto taken = static_cast<std::int64_t>(losses.size()), first = (epoch - 1) * steps_per_epoch, last = first + steps_per_epoch;
  if (first >= taken || (diverged && last >= taken)) return nan;
  return mean_of(losses.begin() + first, losses.begin() + std::min(last, taken));
}

double MlpRecord::last_loss() const { return diverged ? nan : mean_of(losses.end() - std::min(averaged_steps, std::ssize(losses)), losses.end()); }

std::string format_record(const MlpRecord& r) {
  // nlohmann-json writes a number that is not finite as null.
  return Json{{"method", r.arm.method},
              {"depth", r.arm.depth},
              {"seed", r.arm.seed},
              {"diverged", r.diverged},
              {"jacobian_start", to_json(r.start)},
              {"jacobian_end", to_json(r.end)},
              {"seconds", r.seconds},
              {"losses", r.losses}}
             .dump() +
         '\n';
}

std::vector<MlpRecord> parse_records(std::string_view text, const std::string& file) {
  std::vector<MlpRecord> records;
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      records.push_back(record_from(Json::parse(text.substr(0, end))));
    } catch (const Json::exception& e) {
      fail(fmt::format("{} line {}: expected one run of deep_mlp as a JSON object, got \"{}\" ({})", file, line,
                       text.substr(0, std::min<std::size_t>(end, 60)), e.what()));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return records;
}

std::string format_mlp_results(const std::vector<MlpRecord>& records) {
  std::string text = "method,depth,seed,status,steps,train_loss,jacobian_start,jacobian_start_error,jacobian_end,seconds\n";
  for (const MlpRecord& r : records)
    text += fmt::format("{},{},{},{},{}{}{}{}{}{}\n", r.arm.method, r.arm.depth, r.arm.seed, r.diverged ? "diverged" : "ok", r.losses.size(),
                        cell(r.last_loss()), cell(r.start.value), cell(r.start.standard_error), cell(r.end.value), cell(r.seconds));
  return text;
}

std::vector<std::int64_t> shown_epochs(std::int64_t steps, std::int64_t steps_per_epoch) {
  std::vector<std::int64_t> epochs;
  for (std::int64_t epoch : {1, 2, 3, 5, 10})
    if ((epoch - 1) * steps_per_epoch < steps) epochs.push_back(epoch);
  return epochs;
}

std::string mlp_table(const std::vector<MlpRecord>& records, std::int64_t steps, std::int64_t steps_per_epoch) {
  const std::vector<std::int64_t> epochs = shown_epochs(steps, steps_per_epoch);
  std::vector<std::vector<std::string>> rows{{"method", "depth"}};
  for (std::int64_t epoch : epochs) rows[0].push_back(fmt::format("epoch {}", epoch));
  for (const char* head : {"last 20 steps", "diverged", "J at start", "J at end"}) rows[0].emplace_back(head);

  std::vector<std::pair<std::string, std::int64_t>> groups;
  for (const MlpRecord& r : records)
    if (std::pair group(r.arm.method, r.arm.depth); std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  for (const auto& [method, depth] : groups) {
    std::vector<MlpRecord> arms;
    std::ranges::copy_if(records, std::back_inserter(arms), [&](const MlpRecord& r) { return r.arm.method == method && r.arm.depth == depth; });
    const auto over_seeds = [&](const std::function<double(const MlpRecord&)>& value) {
      std::vector<double> values;
      for (const MlpRecord& r : arms) values.push_back(value(r));
      return text_of(summarize(values));
    };
    std::vector<std::string> row{method, std::to_string(depth)};
    for (std::int64_t epoch : epochs) row.push_back(over_seeds([&](const MlpRecord& r) { return r.epoch_loss(epoch, steps_per_epoch); }));
    row.push_back(over_seeds([](const MlpRecord& r) { return r.last_loss(); }));
    const auto diverged = std::ranges::count(arms, true, &MlpRecord::diverged);
    row.push_back(diverged == 0 ? "no" : fmt::format("{} of {}", diverged, arms.size()));
    row.push_back(over_seeds([](const MlpRecord& r) { return r.start.value; }));
    row.push_back(over_seeds([](const MlpRecord& r) { return r.end.value; }));
    rows.push_back(std::move(row));
  }

  std::string text;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      int width = 0;
      for (const auto& other : rows) width = std::max(width, display_width(other[c]));
      text += row[c] + (c + 1 < row.size() ? std::string(static_cast<std::size_t>(width - display_width(row[c]) + 2), ' ') : "\n");
    }
  if (const std::int64_t rest = steps % steps_per_epoch; rest != 0)
    text += fmt::format("Mean training loss of each epoch; epoch {} was trained for {} of its {} steps.\n", steps / steps_per_epoch + 1, rest,
                        steps_per_epoch);
  return text;
}

}  // namespace plumb::lab
