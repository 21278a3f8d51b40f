#include "experiments/common/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/report_page.h"
#include "experiments/common/report_parts.h"

namespace plumb::lab {
namespace {

std::string verdict_html(const std::vector<Place>& places, const Judging& how) {
  if (places.empty()) return "<p class=\"verdict\">No arm has ended yet.</p>\n";
  // The deepest networks are what such a study is about.
  std::string deepest, others;
  for (const Place& place : places) {
    if (place.depth == places.back().depth)
      deepest += fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(sentence(place, how)));
    else
      others += fmt::format("<li>{}</li>", escape_markup(sentence(place, how)));
  }
  if (how.best_rate)
    deepest +=
        "<p class=\"caption\">The first half of the seeds chose each method's learning rate at each depth (the fewest diverged, then the lowest mean "
        "training loss); the others are judged. A single seed chose for itself.</p>\n";
  return deepest + (others.empty() ? "" : "<ul class=\"verdicts\">" + others + "</ul>\n");
}

// What was claimed before, and what came of it.
std::string claims_html(const std::vector<JudgedClaim>& claims) {
  if (claims.empty()) return "";
  std::string html = "<ul class=\"verdicts\">";
  for (const JudgedClaim& c : claims)
    html += fmt::format("<li>{} ({}): <strong>{}</strong>: {}</li>", escape_markup(c.text), escape_markup(c.source), to_string(c.result.verdict),
                        escape_markup(c.result.why()));
  return html + "</ul>\n<p></p>\n";
}

std::string table_caption(const std::vector<ArmGroup>& groups, std::int64_t classes) {
  std::string text = "Mean over the n seeds that ended ok";
  const bool intervals = std::any_of(groups.begin(), groups.end(), [](const ArmGroup& g) { return g.ok > 1; });
  text += intervals ? ", ± half the width of its 95 % Student-t interval; with n = 1 there is no interval." : "; with n = 1 there is no interval.";
  if (classes >= 2 && std::ranges::any_of(groups, [](const ArmGroup& g) { return g.train_loss.n > 0; }))
    text += fmt::format(" Near chance: mean training loss at or above {:.0f} % of ln {}.", 100 * near_chance_share, classes);
  return text;
}

}  // namespace

std::string render_report(const ReportInput& input) {
  const std::vector<ArmGroup> groups = groups_by_depth(input.arms);
  const Judging how{.classes = input.classes, .control = input.control, .best_rate = input.best_rate};
  const std::vector<Place> judged = places(input.arms, how);
  std::string html = input.question.empty() ? "" : fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(input.question));
  html += claims_html(input.claims);
  // Without training losses there is nothing to judge by.
  if (input.columns.empty() || std::ranges::any_of(groups, [](const ArmGroup& g) { return g.train_loss.n > 0; })) html += verdict_html(judged, how);
  if (!input.settings.empty()) html += "<section>\n<h2>Settings</h2>\n" + facts(input.settings) + "</section>\n";
  html += section("Results", table_caption(groups, input.classes), scroll_region("Results", html_table(groups, input)));
  if (const std::string comparisons = html_comparisons(judged); !comparisons.empty())
    html += section(
        "Against " + input.control,
        "Difference of training losses, seed by seed: the same data, batches and draws. Holm's correction over the methods at one depth, in the "
        "interval as well: the chance of any wrong verdict there is at most about 5 %. An arm that diverged is worse than any that did not, by "
        "the exact sign test. n to decide: how many seeds would, with an even chance, if mean and spread are as they seem. comparisons.csv has all "
        "pairs.",
        scroll_region("Against " + input.control, comparisons));
  const bool repeated = std::any_of(groups.begin(), groups.end(), [](const ArmGroup& g) { return g.arms.size() > 1; });
  const std::string over_seeds = repeated ? " Geometric mean over seeds." : "";
  // Plots leave the intervals of many methods to hover; the captions say so where it is the case.
  const std::vector<Plot> losses = loss_plots(input);
  const bool crowded = std::any_of(losses.begin(), losses.end(), is_crowded);
  std::string loss_caption = "One seed a line; a thin line that ends in a cross diverged.";
  std::string accuracy_caption;
  if (repeated) {
    loss_caption = "Mean over the seeds that ended ok" + std::string(crowded ? "" : ", with the band of its 95 % interval") +
                   "; seeds that diverged are thin lines that end in a cross.";
    accuracy_caption = crowded ? "Mean over the seeds that ended ok. " : "Bars are 95 % intervals over seeds. ";
  }
  if (!input.losses.empty())
    html += section("Training loss",
                    loss_caption + " Long runs are shown as means of consecutive logged steps. Point at a plot for its values" +
                        (crowded && repeated ? " and 95 % intervals." : "."),
                    figures(losses));
  if (std::ranges::any_of(groups, [](const ArmGroup& g) { return g.depth > 0 && g.val_accuracy.n > 0; }) || input.losses.empty())
    html += section("Accuracy against depth", accuracy_caption + "Methods at one depth stand side by side to keep them apart.",
                    figures(accuracy_plots(input)));
  if (const std::vector<Plot> plots = ratio_plots(input); !plots.empty())
    html +=
        section("Branch against stream",
                "How much a branch adds to the residual stream: the norm of what is added over the norm of what it is added to, by block, "
                "at each arm's last logged step. What a gate keeps of the stream may itself be scaled: the column change of layers.csv is the norm "
                "of all that a junction changes, before a post-norm, over that of the stream." +
                    over_seeds,
                figures(plots));
  if (const std::vector<Plot> plots = gate_plots(input); !plots.empty())
    html += section("Gates",
                    "The largest magnitude among the factors with which a gate acts, by block, at each arm's last logged step; methods without such "
                    "factors are absent, and one of exactly zero has no place on a log scale." +
                        over_seeds,
                    figures(plots));
  if (!input.notes.empty()) html += "<section>\n<h2>Provenance</h2>\n" + facts(input.notes, " notes") + "</section>\n";
  return page(input.title, html);
}

}  // namespace plumb::lab
