#include "experiments/passport/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/common/plot_text.h"
#include "experiments/common/report_parts.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

// The numbers of a branch under their names, in the order of the columns of passport.csv.
struct Column {
  const char* name;
  double BranchPassport::*required = nullptr;
  std::optional<double> BranchPassport::*optional = nullptr;
};
constexpr Column columns[] = {{"stream_norm", &BranchPassport::stream_norm},
                              {"branch_norm", &BranchPassport::branch_norm},
                              {"ratio", &BranchPassport::ratio},
                              {"cosine", &BranchPassport::cosine},
                              {"mean_square", &BranchPassport::mean_square},
                              {"predicted_mean_square", &BranchPassport::predicted_mean_square},
                              {"gate_mean", nullptr, &BranchPassport::gate_mean},
                              {"gate_min", nullptr, &BranchPassport::gate_min},
                              {"gate_max", nullptr, &BranchPassport::gate_max},
                              {"grad_norm", &BranchPassport::grad_norm},
                              {"update", nullptr, &BranchPassport::update},
                              {"entropy", nullptr, &BranchPassport::entropy},
                              {"relative_entropy", nullptr, &BranchPassport::relative_entropy},
                              {"largest_logit", nullptr, &BranchPassport::largest_logit},
                              {"change", &BranchPassport::change}};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double value_of(const BranchPassport& row, const Column& c) { return c.required ? row.*c.required : (row.*c.optional).value_or(nan); }

template <class Enum>
Enum enum_named(const std::string& name, std::initializer_list<Enum> all) {
  for (Enum e : all)
    if (name == nn::name(e)) return e;
  fail(fmt::format("unknown name {}", name));
}

double number(const Json& json) { return json.is_null() ? nan : json.get<double>(); }

PassportRecord record_from(const Json& o) {
  PassportRecord r{.arm = {o.at("gate"), o.at("depth"), o.at("seed")},
                   .step = o.at("step"),
                   .loss = number(o.at("loss")),
                   .grad_norm = number(o.at("grad_norm")),
                   .divergence = o.value("divergence", "")};
  r.passport.growth = enum_named(o.at("growth").get<std::string>(),
                                 {nn::Growth::identity, nn::Growth::linear, nn::Growth::harmonic, nn::Growth::geometric, nn::Growth::unstated});
  r.passport.tokens = o.at("tokens");
  r.passport.dim = o.at("dim");
  r.passport.input_mean_square = number(o.at("input_mean_square"));
  if (o.contains("jacobian")) r.jacobian = {number(o.at("jacobian")), number(o.at("jacobian_error")), o.at("jacobian_exact")};
  const Json &branches = o.at("branches"), &norms = branches.at("norm");
  r.passport.branches.resize(norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    BranchPassport& row = r.passport.branches[i];
    row.block = static_cast<std::int64_t>(i / 2);
    row.branch = i % 2 == 0 ? "attn" : "mlp";
    row.norm = enum_named(norms[i].get<std::string>(), {nn::Norm::none, nn::Norm::pre, nn::Norm::post});
    for (const Column& c : columns) {
      const Json& cell = branches.at(c.name).at(i);
      if (c.required)
        row.*c.required = number(cell);
      else if (!cell.is_null())
        row.*c.optional = cell.get<double>();
    }
  }
  check(!r.passport.branches.empty() && norms.size() % 2 == 0, "no blocks");
  return r;
}

double geometric_mean(const std::vector<double>& values) { return std::ranges::find(values, 0.0) != values.end() ? 0 : log_mean(0, values).y; }

std::string short_value(double v) { return std::isfinite(v) ? fmt::format("{:.2g}", v) : "–"; }

}  // namespace

std::string PassportArm::label() const { return fmt::format("{} depth {} seed {}", gate, depth, seed); }

std::vector<std::string> PassportRecord::findings() const { return step == 0 ? warnings(passport) : std::vector<std::string>(); }

std::int64_t depth_of(const Passport& passport) { return static_cast<std::int64_t>(passport.branches.size() / 2); }

BlockFigures block_figures(const Passport& passport, std::int64_t block) {
  const BranchPassport &a = passport.branches[static_cast<std::size_t>(2 * block)], &b = passport.branches[static_cast<std::size_t>(2 * block + 1)];
  return {(a.ratio + b.ratio) / 2, std::hypot(a.grad_norm, b.grad_norm)};
}

std::string format_record(const PassportRecord& r) {
  // nlohmann-json writes a number that is not finite as null.
  Json o{{"gate", r.arm.gate},
         {"depth", r.arm.depth},
         {"seed", r.arm.seed},
         {"step", r.step},
         {"loss", r.loss},
         {"grad_norm", r.grad_norm},
         {"growth", nn::name(r.passport.growth)},
         {"tokens", r.passport.tokens},
         {"dim", r.passport.dim},
         {"input_mean_square", r.passport.input_mean_square}};
  if (!r.divergence.empty()) o["divergence"] = r.divergence;
  if (r.jacobian) {
    o["jacobian"] = r.jacobian->value;
    o["jacobian_error"] = r.jacobian->standard_error;
    o["jacobian_exact"] = r.jacobian->exact;
  }
  Json branches{{"norm", Json::array()}};  // a list a column, attention and MLP of each block in turn
  for (const BranchPassport& row : r.passport.branches) branches["norm"].push_back(nn::name(row.norm));
  for (const Column& c : columns) {
    branches[c.name] = Json::array();
    for (const BranchPassport& row : r.passport.branches) branches[c.name].push_back(value_of(row, c));
  }
  o["branches"] = std::move(branches);
  return o.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::vector<PassportRecord> parse_passports(std::string_view text, const std::string& file) {
  std::vector<PassportRecord> records;
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    try {
      records.push_back(record_from(Json::parse(one)));
    } catch (const std::exception& e) {
      fail(fmt::format("{}, line {}: expected a passport as one JSON object, got \"{}\" ({}); mend or delete the line", file, line, one.substr(0, 60),
                       e.what()));
    }
  }
  return records;
}

std::string format_passports(const std::vector<PassportRecord>& records) {
  std::string text = "gate,depth,seed,step,block,branch,norm";
  for (const Column& c : columns) text += fmt::format(",{}", c.name);
  text += '\n';
  for (const PassportRecord& r : records)
    for (const BranchPassport& row : r.passport.branches) {
      text += fmt::format("{},{},{},{},{},{},{}", r.arm.gate, r.arm.depth, r.arm.seed, r.step, row.block, row.branch, nn::name(row.norm));
      for (const Column& c : columns) {
        const double value = value_of(row, c);
        text += std::isfinite(value) ? fmt::format(",{}", value) : ",";
      }
      text += '\n';
    }
  return text;
}

std::vector<PassportGroup> passport_groups(const std::vector<PassportRecord>& records, Moment moment) {
  std::vector<PassportGroup> groups;
  for (const PassportRecord& r : records) {
    const bool later = std::ranges::any_of(records, [&](const PassportRecord& other) { return other.arm == r.arm && other.step > r.step; });
    if (moment == Moment::fresh ? r.step != 0 : r.step == 0 || later) continue;
    auto group = std::ranges::find_if(groups, [&](const PassportGroup& g) { return g.gate == r.arm.gate && g.depth == r.arm.depth; });
    if (group == groups.end()) group = groups.insert(groups.end(), {r.arm.gate, r.arm.depth});
    group->seeds.push_back(&r);
  }
  std::ranges::stable_sort(groups, {}, &PassportGroup::depth);
  return groups;
}

PassportSummary summarize(const PassportGroup& group) {
  PassportSummary s{};
  const auto mean = [&](auto&& value) {
    std::vector<double> values;
    for (const PassportRecord* r : group.seeds) values.push_back(value(r->passport));
    return geometric_mean(values);
  };
  // The extreme of an optional number over the branches that have it.
  const auto extreme = [&](std::optional<double> BranchPassport::*member, auto&& better) {
    double best = nan;
    for (const PassportRecord* r : group.seeds)
      for (const BranchPassport& row : r->passport.branches)
        if (const std::optional<double> v = row.*member; v && !(better(best, *v))) best = *v;
    return best;
  };
  const std::int64_t depth = group.depth;
  s.mean_square = mean([](const Passport& p) { return p.branches.back().mean_square; });
  s.predicted = mean([](const Passport& p) { return p.branches.back().predicted_mean_square; });
  const std::int64_t places[] = {0, depth / 2, depth - 1};
  for (int i = 0; i < 3; ++i) s.ratio[i] = mean([&](const Passport& p) { return block_figures(p, places[i]).ratio; });
  for (int i = 0; i < 2; ++i) s.grad_norm[i] = mean([&](const Passport& p) { return block_figures(p, places[2 * i]).grad_norm; });
  s.entropy = extreme(&BranchPassport::relative_entropy, std::less_equal<>());
  s.largest_logit = extreme(&BranchPassport::largest_logit, std::greater_equal<>());
  std::vector<double> losses;
  for (const PassportRecord* r : group.seeds) losses.push_back(r->loss);
  s.loss = geometric_mean(losses);
  std::vector<double> jacobians;
  double error = 0;
  for (const PassportRecord* r : group.seeds)
    if (r->jacobian) {
      jacobians.push_back(r->jacobian->value);
      error = std::max(error, r->jacobian->standard_error);
    }
  if (!jacobians.empty()) {
    const Summary over_seeds = summarize(jacobians);
    s.jacobian = over_seeds.mean;
    s.jacobian_error = std::max(error, over_seeds.deviation.value_or(0) / std::sqrt(static_cast<double>(jacobians.size())));
  }
  for (const PassportRecord* r : group.seeds)
    for (const std::string& finding : r->findings())
      if (std::ranges::find(s.findings, finding) == s.findings.end()) s.findings.push_back(finding);
  return s;
}

namespace {

std::string table_of(const std::vector<PassportGroup>& groups, const std::string& title, bool fresh, bool colour) {
  std::vector<std::vector<std::string>> rows{{"gate", "depth", "stream", "law", "g/x first", "middle", "last", "grad first", "last"}};
  if (fresh)
    rows[0].push_back("J^2");
  else
    rows[0].insert(rows[0].end(), {"entropy", "logit", "loss"});
  std::vector<bool> found{false};
  for (const PassportGroup& g : groups) {
    const PassportSummary s = summarize(g);
    rows.push_back({shortened(g.gate, 20), std::to_string(g.depth), short_value(s.mean_square), short_value(s.predicted), short_value(s.ratio[0]),
                    short_value(s.ratio[1]), short_value(s.ratio[2]), short_value(s.grad_norm[0]), short_value(s.grad_norm[1])});
    if (fresh)
      rows.back().push_back(short_value(s.jacobian.value_or(nan)));
    else
      rows.back().insert(rows.back().end(), {short_value(s.entropy), short_value(s.largest_logit), short_value(s.loss)});
    found.push_back(!s.findings.empty());
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], letters(row[c]));
  std::string text = title + "\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::string gap(widths[c] - letters(rows[r][c]), ' ');
      line += (c > 0 ? "  " : "") + (c == 0 ? rows[r][c] + gap : gap + rows[r][c]);
    }
    if (found[r]) line += "  !";
    text += (colour && (r == 0 || found[r]) ? (r == 0 ? "\x1b[1m" : "\x1b[31m") + line + "\x1b[0m" : line) + "\n";
  }
  return text;
}

}  // namespace

std::string passport_table(const std::vector<PassportRecord>& records, bool colour) {
  const std::vector<PassportGroup> fresh = passport_groups(records, Moment::fresh), last = passport_groups(records, Moment::last);
  std::string text;
  if (!fresh.empty()) text += table_of(fresh, "At init", true, colour);
  if (!last.empty()) text += "\n" + table_of(last, "At the last passport", false, colour);
  if (!fresh.empty())
    text +=
        "\nstream, law: mean square behind the last block, measured and by law from the first block; g/x: what a block's\n"
        "branches add over what they add it to; grad: their gradient norm; J^2: mean squared singular value of the Jacobian\n";
  std::string findings;
  for (const PassportGroup& g : fresh)
    for (const std::string& finding : summarize(g).findings) findings += fmt::format("! {} depth {}: {}\n", g.gate, g.depth, finding);
  for (const PassportRecord& r : records)
    if (!r.divergence.empty()) findings += fmt::format("! {}: {}\n", r.arm.label(), r.divergence);
  return text + (findings.empty() ? "" : "\n" + findings);
}

}  // namespace plumb::lab
