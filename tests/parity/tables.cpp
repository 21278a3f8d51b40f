// Compares factors by depth, schedules, and block and cross masks with a tables.json.
#include <cmath>

#include "core/drop_key.h"
#include "plumb/plumb.h"
#include "tests/parity/case.h"

namespace plumb::parity {
namespace {

using Json = nlohmann::json;

const std::map<std::string, double (*)(std::int64_t)>& factors() {
  static const std::map<std::string, double (*)(std::int64_t)> table{
      {"layerscale_init", nn::layerscale_init},
      // An encoder of n blocks has 2 n branches.
      {"deepnorm_alpha", [](std::int64_t n) { return nn::deepnorm_alpha(2 * n); }},
      {"deepnorm_beta", [](std::int64_t n) { return nn::deepnorm_beta(2 * n); }},
      {"t_fixup_encoder", [](std::int64_t n) { return nn::t_fixup_factor(2 * n); }},
      {"t_fixup_decoder", nn::t_fixup_decoder_factor},
      {"fixup_fc1", [](std::int64_t n) { return nn::fixup_factor(2 * n, 2); }},
      {"fixup_qkv", [](std::int64_t n) { return nn::fixup_factor(2 * n, 4); }},
      {"gpt2_residual", [](std::int64_t n) { return nn::gpt2_factor(2 * n); }},
      {"sub_ln", [](std::int64_t n) { return nn::sub_ln_factor(2 * n); }},
      {"admin_omega", [](std::int64_t n) { return nn::admin_omega(2 * n); }},
  };
  return table;
}

class Tables {
 public:
  std::vector<std::string> differences;

  void number(const std::string& what, double ours, double theirs) {
    if (!(std::abs(ours - theirs) <= 1e-9 * std::max(std::abs(theirs), 1e-12)))
      differences.push_back(fmt::format("{}: expected {:.12g}, got {:.12g}", what, theirs, ours));
  }

  void factor_row(const Json& row) {
    const std::int64_t blocks = row.at("blocks");
    for (const auto& [name, value] : row.items()) {
      if (name == "blocks") continue;
      const auto ours = factors().find(name);
      if (ours == factors().end())
        differences.push_back("factor that is not known: " + name);
      else
        number(fmt::format("{} of {} blocks", name, blocks), ours->second(blocks), value);
    }
  }

  void schedules(const std::string& of, const Json& table) {
    const std::int64_t blocks = table.at("blocks");
    for (const auto& [name, rates] : table.items()) {
      if (name == "rate" || name == "blocks") continue;
      const nn::Schedule schedule = name == "uniform"  ? nn::Schedule::constant
                                    : name == "linear" ? nn::Schedule::increasing
                                                       : enum_named<nn::Schedule>("schedule", name);
      for (std::int64_t i = 0; i < blocks; ++i)
        number(fmt::format("{} {} block {}", of, name, i), nn::rate_at(schedule, table.at("rate"), i, blocks),
               rates.at(static_cast<std::size_t>(i)));
    }
  }

  void mask(const Json& m) {
    const std::int64_t height = m.at("height"), width = m.at("width"), window = m.at("window");
    const auto flat = [](const Json& rows) {
      std::vector<std::uint8_t> cells;
      for (const Json& row : rows)
        for (const Json& cell : row) cells.push_back(cell.get<std::uint8_t>());
      return cells;
    };
    const std::vector<std::uint8_t> seeds = flat(m.at("seeds"));
    for (const DropShape shape : {DropShape::block, DropShape::cross})
      if (dropped_by_seeds(shape, height, width, window, seeds) != flat(m.at(enum_name(shape))))
        differences.push_back(fmt::format("{} mask of {} x {}, window {}", enum_name(shape), height, width, window));
  }
};

}  // namespace

std::vector<std::string> check_tables(const Json& tables) {
  Tables t;
  for (const auto& [name, content] : tables.items()) {
    if (name == "factors")
      for (const Json& row : content) t.factor_row(row);
    else if (name == "schedules")
      for (const auto& [of, table] : content.items()) t.schedules(of, table);
    else if (name == "masks")
      for (const Json& m : content) t.mask(m);
    else
      t.differences.push_back("unknown table: " + name);
  }
  return t.differences;
}

}  // namespace plumb::parity
