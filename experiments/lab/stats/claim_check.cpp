#include "experiments/lab/stats/claim_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/nearest.h"

namespace plumb::lab {
namespace {

constexpr std::ptrdiff_t most_primaries = 3;

// The points of the two sides of a comparison.
std::vector<Point> sides_of(const Comparison& c) {
  if (c.constant) return {c.where};
  std::vector<Point> sides{c.a, c.b};
  for (Point& side : sides)
    for (const auto& [axis, value] : c.where.entries()) side.set(axis, value);
  return sides;
}

bool names_all_of(const Point& a, const Point& b) {
  return std::ranges::all_of(b.entries(), [&](const Point::Entry& e) { return a.find(e.first); });
}

std::vector<std::string> texts_of(const std::vector<AxisValue>& values) {
  std::vector<std::string> texts;
  for (const AxisValue& value : values) texts.push_back(to_string(value));
  return texts;
}

// Throws Error if an entry of a claim is wrong for every command line.
void check_entry(const std::string& claim, const Point::Entry& entry, const std::vector<ClaimAxis>& axes) {
  const auto& [name, value] = entry;
  const auto axis = std::ranges::find(axes, name, &ClaimAxis::name);
  if (axis == axes.end()) {
    std::vector<std::string> names;
    for (const ClaimAxis& a : axes) names.push_back(a.name);
    fail(
        fmt::format("[claim] \"{}\": expected axes of this study, got {}; {}", claim, name, suggest_name(name, names)));
  }
  const auto* text = std::get_if<std::string>(&value);
  check(axis->text == (text != nullptr), "[claim] \"{}\": expected a {} for {}, got {} {}", claim,
        axis->text ? "text" : "number", name, text ? "the text" : "the number", to_string(value));
  check(!text || axis->names.empty() || std::ranges::find(axis->names, *text) != axis->names.end(),
        "[claim] \"{}\": expected a value that {} accepts, got '{}'; {}", claim, axis->option, to_string(value),
        suggest_name(to_string(value), axis->names));
}

// The message "no depth 48 in --depths 12,24". Empty if this call has the value.
std::string missing(const Point::Entry& entry, const std::vector<ClaimAxis>& axes) {
  const auto& [name, value] = entry;
  const ClaimAxis& axis = *std::ranges::find(axes, name, &ClaimAxis::name);
  const auto is_ours = [&wanted = value](const AxisValue& v) { return same(v, wanted); };  // clang captures no bindings
  if (axis.searched || std::ranges::any_of(axis.values, is_ours)) return "";
  const std::vector<std::string> there = texts_of(axis.values);
  const std::string near = axis.text && axis.names.empty() ? nearest_name(to_string(value), there) : "";
  return fmt::format("no {} {} in {} {}{}", name, to_string(value), axis.option, fmt::join(there, ","),
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
}

// The reason why this call has no trial at `side`. Empty if the call has a trial there.
std::string why_absent(const Point& side, const std::vector<ClaimAxis>& axes, const std::vector<Point>& places) {
  Point named;  // the entries of `side` on the axes that `places` have
  for (const Point::Entry& entry : side.entries()) {
    if (std::string why = missing(entry, axes); !why.empty()) return why;
    if (places.empty() || places.front().find(entry.first)) named.set(entry.first, entry.second);
  }
  if (std::ranges::any_of(places, [&](const Point& p) { return p.contains(named); })) return "";
  return fmt::format("the study does not run {}", named.label());
}

}  // namespace

std::vector<std::string> claims_not_judged(const std::vector<Claim>& claims, const std::vector<ClaimAxis>& axes,
                                           const std::vector<Point>& places) {
  const auto primaries = std::ranges::count(claims, true, &Claim::is_primary);
  check(primaries <= most_primaries, "[claim] expected at most {} primary claims, got {}", most_primaries, primaries);
  std::vector<std::string> not_judged;
  for (const Claim& claim : claims) {
    const Comparison& c = claim.comparison;
    for (const Point* point : {&c.a, &c.b, &c.where})
      for (const Point::Entry& entry : point->entries()) check_entry(claim.text, entry, axes);
    check(names_all_of(c.a, c.b) && names_all_of(c.b, c.a),
          "[claim] \"{}\": expected two points on the same axes, got {} and {}", claim.text, c.a.label(), c.b.label());
    if (!c.constant && c.a == c.b) {
      not_judged.push_back(fmt::format("{}: compares {} with itself", claim.text, c.a.label()));
      continue;
    }
    for (const Point& side : sides_of(c))
      if (const std::string why = why_absent(side, axes, places); !why.empty()) {
        not_judged.push_back(fmt::format("{}: {}", claim.text, why));
        break;
      }
  }
  return not_judged;
}

std::optional<std::string> unmeasured_claim(const std::vector<Claim>& claims, const Record& record) {
  if (record.status != Status::ok) return std::nullopt;
  for (const Claim& claim : claims) {
    const Comparison& c = claim.comparison;
    const bool there = c.value == "steps" || c.value == "seconds" ||
                       std::ranges::find(record.values, c.value, &Values::value_type::first) != record.values.end();
    if (there || std::ranges::none_of(sides_of(c), [&](const Point& side) { return record.point.contains(side); }))
      continue;
    return fmt::format("[claim] \"{}\": expected a value that trials measure, got {}, which {} did not measure; {}",
                       claim.text, c.value, record.point.label(), suggest_name(c.value, measured_names({record})));
  }
  return std::nullopt;
}

}  // namespace plumb::lab
