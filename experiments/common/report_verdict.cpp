#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/common/report_parts.h"

namespace plumb::lab {
namespace {

using Groups = std::vector<const ArmGroup*>;

// "a", "a and b", "a, b and c", and a count for what is beyond six.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  if (names.size() > most) shown.push_back(fmt::format("{} more", names.size() - most));
  std::string text = shown.front();
  for (std::size_t i = 1; i < shown.size(); ++i) text += (i + 1 == shown.size() ? " and " : ", ") + shown[i];
  return text;
}

std::string gates_of(const Groups& groups) {
  std::vector<std::string> names;
  for (const ArmGroup* g : groups) names.push_back(g->gate);
  return listed(names);
}

std::string loss_of(const ArmGroup& g) {
  if (g.train_loss.half_width) return fmt::format("{:.3f} ± {:.3f} (n = {})", g.train_loss.mean, *g.train_loss.half_width, g.train_loss.n);
  return fmt::format("{:.3f} (n = {})", g.train_loss.mean, g.train_loss.n);
}

// One group a gate: the lowest mean training loss of those that have one, else the first.
Groups best_rates(const Groups& groups) {
  Groups best;
  for (const ArmGroup* g : groups) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const ArmGroup* b) { return b->gate == g->gate; });
    if (same == best.end())
      best.push_back(g);
    else if (g->train_loss.n > 0 && ((*same)->train_loss.n == 0 || g->train_loss.mean < (*same)->train_loss.mean))
      *same = g;
  }
  return best;
}

// What the intervals allow to say about `best` beside the others that trained.
std::string ranking(const ArmGroup& best, const Groups& others) {
  if (!best.train_loss.half_width) return "; one seed gives no interval to rank by";
  Groups overlap, without;
  for (const ArmGroup* g : others) {
    if (!g->train_loss.half_width)
      without.push_back(g);
    else if (!intervals_apart(best.train_loss, g->train_loss))
      overlap.push_back(g);
  }
  std::string text;
  if (!overlap.empty())
    text = fmt::format("; {} {} not separable from it (95 % intervals overlap)", gates_of(overlap), overlap.size() == 1 ? "is" : "are");
  else if (without.empty())
    text = ", its 95 % interval apart from all others";
  if (!without.empty()) text += fmt::format("; {} {} one seed and no interval", gates_of(without), without.size() == 1 ? "has" : "have");
  return text;
}

std::string verdict(std::int64_t depth, const Groups& all, std::int64_t classes) {
  std::set<double> rates;
  for (const ArmGroup* g : all) rates.insert(g->lr);
  Groups trained, chance, diverged, unfinished;
  std::vector<std::string> partly;
  for (const ArmGroup* g : best_rates(all)) {
    const bool has_loss = g->train_loss.n > 0;
    (has_loss ? near_chance(*g, classes) ? chance : trained : g->diverged > 0 ? diverged : unfinished).push_back(g);
    if (has_loss && g->diverged > 0) partly.push_back(fmt::format("{} diverged in {} of {} seeds", g->gate, g->diverged, g->arms.size()));
  }
  std::string text = depth > 0 ? fmt::format("At depth {},", depth) : "Of all arms,";
  std::vector<std::string> rest;
  if (trained.empty()) {
    text += " no method trained";
  } else {
    const auto best = std::min_element(trained.begin(), trained.end(), [](auto* a, auto* b) { return a->train_loss.mean < b->train_loss.mean; });
    const ArmGroup& winner = **best;
    Groups others = trained;
    others.erase(others.begin() + (best - trained.begin()));
    text +=
        fmt::format(" {} {}", winner.gate, others.empty() ? "reached a training loss of " : "reached the lowest training loss, ") + loss_of(winner);
    if (rates.size() > 1) text += fmt::format(" at lr {}", winner.lr);
    if (!others.empty()) text += ranking(winner, others);
  }
  if (!chance.empty()) rest.push_back(fmt::format("{} stayed near chance (ln {} = {:.3f})", gates_of(chance), classes, chance_loss(classes)));
  if (!diverged.empty()) rest.push_back(gates_of(diverged) + " diverged");
  if (!partly.empty()) rest.push_back(listed(partly));
  if (!unfinished.empty()) rest.push_back(gates_of(unfinished) + " ended without a training loss");
  for (std::size_t i = 0; i < rest.size(); ++i) text += (i == 0 && trained.empty() ? ": " : "; ") + rest[i];
  return text + ".";
}

}  // namespace

double chance_loss(std::int64_t classes) { return classes < 2 ? std::numeric_limits<double>::infinity() : std::log(static_cast<double>(classes)); }

bool near_chance(const ArmGroup& group, std::int64_t classes) {
  return group.train_loss.n > 0 && group.train_loss.mean >= near_chance_share * chance_loss(classes);
}

std::vector<std::string> verdicts(const std::vector<ArmGroup>& groups, std::int64_t classes) {
  std::map<std::int64_t, Groups> by_depth;
  for (const ArmGroup& g : groups) by_depth[g.depth].push_back(&g);
  std::vector<std::string> sentences;
  for (const auto& [depth, some] : by_depth) sentences.push_back(verdict(depth, some, classes));
  return sentences;
}

}  // namespace plumb::lab
