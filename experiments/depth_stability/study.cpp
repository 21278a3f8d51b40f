#include "experiments/depth_stability/study.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/atomic_file.h"

namespace plumb::lab {

std::string Arm::label() const { return fmt::format("{} depth {} lr {:g} seed {}", gate, depth, lr, seed); }

Study::Study(const RunFolder& folder, const std::vector<Arm>& arms, ReportInput report) : folder_(folder), report_(std::move(report)) {
  for (const Arm& arm : arms) order_.emplace(key(arm), order_.size());
  read();
}

bool Study::finished(const Arm& arm) const {
  return std::ranges::any_of(report_.arms, [&](const ArmResult& r) { return key(r) == key(arm) && r.status != Status::failed; });
}

void Study::read() {
  namespace fs = std::filesystem;
  const auto text = [&](const char* file) { return fs::exists(folder_ / file) ? read_file(folder_ / file) : std::string(); };
  const auto name = [&](const char* file) { return (folder_ / file).string(); };
  if (const std::string csv = text("results.csv"); !csv.empty()) report_.arms = parse_results(csv, name("results.csv"));
  std::erase_if(report_.arms, [](const ArmResult& r) { return r.status == Status::failed; });
  report_.losses = parse_losses(text("metrics.jsonl"), name("metrics.jsonl"));
  if (const std::string csv = text("layers.csv"); !csv.empty()) report_.layers = parse_layers(csv, name("layers.csv"));
  sort();
}

void Study::add(const ArmResult& result, std::vector<LossPoint> losses, std::vector<LayerPoint> layers) {
  report_.arms.push_back(result);
  report_.losses.insert(report_.losses.end(), std::make_move_iterator(losses.begin()), std::make_move_iterator(losses.end()));
  report_.layers.insert(report_.layers.end(), std::make_move_iterator(layers.begin()), std::make_move_iterator(layers.end()));
  sort();
}

// Rows in the order of the arms, so that a resumed study writes the same files as one that never stopped; rows without a finished arm go.
void Study::sort() {
  std::vector<bool> has_result(order_.size());
  const auto arrange = [&](auto& rows, auto&& stays) {
    std::erase_if(rows, [&](const auto& row) {
      const auto arm = order_.find(key(row));
      return arm == order_.end() || !stays(arm->second);
    });
    std::ranges::stable_sort(rows, {}, [&](const auto& row) { return order_.at(key(row)); });
  };
  arrange(report_.arms, [](std::size_t) { return true; });
  for (const ArmResult& r : report_.arms) has_result[order_.at(key(r))] = true;
  arrange(report_.losses, [&](std::size_t arm) { return has_result[arm]; });
  arrange(report_.layers, [&](std::size_t arm) { return has_result[arm]; });
}

void Study::write() const {
  std::string losses;
  for (const LossPoint& p : report_.losses) losses += format_loss(p);
  write_file_atomically(folder_ / "metrics.jsonl", losses);
  write_file_atomically(folder_ / "layers.csv", format_layers(report_.layers));
  write_file_atomically(folder_ / "report.html", render_report(report_));
  write_file_atomically(folder_ / "results.csv", format_results(report_.arms));
}

}  // namespace plumb::lab
