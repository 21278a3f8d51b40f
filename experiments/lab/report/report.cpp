#include "experiments/lab/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "experiments/lab/report/layers.h"
#include "experiments/lab/report/page.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/report/text.h"
#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/groups.h"

namespace plumb::lab {
namespace {

// The claims of the study with their verdicts, the sentences on the conditions, and the remarks.
std::string verdicts_html(const StudyResults& results) {
  std::string list, lines;
  for (const JudgedClaim& c : listed_claims(results))
    list += fmt::format("<li>{} ({}): <strong>{}</strong>: {}</li>", escape_markup(c.text), escape_markup(c.source),
                        escape_markup(c.verdict_words()), escape_markup(c.why()));
  for (const std::string& line : further_sentences(results)) list += fmt::format("<li>{}</li>", escape_markup(line));
  for (const std::string& line : remarks(results))
    lines += fmt::format("<p class=\"caption\">{}</p>\n", escape_markup(line));
  return list.empty()
             ? lines
             : fmt::format("<section>\n<h2>Verdicts</h2>\n<ul class=\"verdicts\">{}</ul>\n{}</section>\n", list, lines);
}

std::string table_caption(const std::vector<TrialGroup>& groups, const std::vector<TrialResult>& trials,
                          const Judging& how) {
  std::string text =
      "Mean over the n seeds that trained (if none trained: that ended), ± half the width of its 95 % Student-t "
      "interval; with n = 1 there is no interval.";
  if (how.chance.known() &&
      std::ranges::any_of(groups, [](const TrialGroup& g) { return g.summary("train_loss").n > 0; }))
    text += fmt::format(" Near chance: {}.", near_chance_rule(trials, how.chance));
  return text;
}

// The heat map of methods by depth, the rankings with intervals, and the caption of both.
std::string first_look(const std::vector<Condition>& judged, const Judging& how, Gallery& gallery) {
  const std::vector<DotPlot> ranks = rankings(judged, how.chance, how.references);
  std::vector<std::string> svgs;
  if (const std::optional<HeatMap> map = overview(judged, how.chance)) svgs.push_back(gallery.svg(*map));
  for (const DotPlot& plot : ranks) svgs.push_back(gallery.svg(plot));
  if (svgs.empty()) return "";
  const bool repeated = std::ranges::any_of(ranks, [](const DotPlot& p) {
    return std::ranges::any_of(p.rows, [](const DotRow& r) { return !r.singles.empty(); });
  });
  std::string caption;
  if (repeated)
    caption =
        "Dots are means over the seeds that trained, bars are 95 % t intervals (wide for few seeds, and cut at the "
        "frame), ticks are single seeds. ";
  if (std::ranges::any_of(judged, [](const Condition& p) {
        return std::ranges::any_of(p.against_control, [](const JudgedPair& j) { return j.difference.duel.seeds > 1; });
      }))
    caption +=
        fmt::format("Better, worse and no verdict compare with {}, seed by seed; the table below has the differences. ",
                    escape_markup(how.control));
  return grid(svgs) + (caption.empty() ? "" : fmt::format("<p class=\"caption\">{}</p>\n", caption));
}

std::string pictures_html(const Section& section) {
  std::string html;
  for (const Picture& p : section.pictures)
    html += fmt::format(
        "<figure class=\"picture\"><img src=\"data:image/png;base64,{}\" "
        "alt=\"{}\"><figcaption>{}</figcaption></figure>\n",
        escape_markup(p.png_base64), escape_markup(p.title), escape_markup(p.title));
  return html.empty() ? "" : scroll_region(section.title, "<div class=\"pictures\">" + html + "</div>\n");
}

// The sections on branches and gates; the caption of each ends with over_seeds. A section of the study may already show
// the branches.
std::string layer_sections(const StudyResults& results, const std::string& over_seeds, Gallery& gallery) {
  std::string html;
  const auto shown = [&](const std::string& id) {
    return std::ranges::any_of(results.sections, [&](const Section& own) {
      return std::ranges::find(own.charts, id, &Figure::id) != own.charts.end();
    });
  };
  if (const std::vector<Plot> plots = ratio_plots(results); !plots.empty() && !shown(plots.front().id))
    html += section("Branch against stream",
                    "The norm of the addition of a branch divided by the norm of the residual stream that it is added "
                    "to, by block, at the last logged step of each trial. A gate may also scale the stream: the column "
                    "change of layers.csv has the norm of the whole change at a residual sum, before a post-norm, "
                    "divided by the norm of the stream." +
                        over_seeds,
                    gallery.show(plots));
  if (const std::vector<Plot> plots = gate_plots(results); !plots.empty())
    html += section("Gates",
                    "The largest magnitude of the factors of a gate, by block, at the last logged step of each trial. "
                    "Methods without factors are not shown, and a factor of exactly 0 has no place on a log scale." +
                        over_seeds,
                    gallery.show(plots));
  if (const std::vector<Plot> plots = gate_step_plots(results); !plots.empty())
    html += section("Gates over training",
                    "The largest factor of each branch as a geometric mean over blocks and branches, against the "
                    "optimizer step." +
                        over_seeds,
                    gallery.show(plots));
  return html;
}

}  // namespace

std::string section(const Section& own, Gallery& gallery) {
  if (own.table.empty() && own.charts.empty() && own.pictures.empty()) return "";
  std::vector<std::string> svgs;
  for (const Figure& chart : own.charts) svgs.push_back(gallery.svg(chart));
  return section(escape_markup(own.title), escape_markup(own.caption),
                 (svgs.empty() ? "" : grid(svgs)) +
                     (own.table.empty() ? "" : scroll_region(own.title, own.table.html())) + pictures_html(own));
}

Report results_report(const StudyResults& results) {
  Report report;
  Gallery gallery(report.figures);
  const Judging& how = results.judging;
  const std::vector<TrialGroup> groups = groups_by_depth(results.trials);
  const std::vector<Condition>& judged = results.conditions;
  const std::string answer = answer_of(results);
  std::string html = answer.empty() ? "" : fmt::format("<p class=\"verdict\">{}</p>\n", escape_markup(answer));
  std::set<std::string> names;
  for (const TrialResult& a : results.trials) names.insert(a.method);
  std::span<const Section> sections = results.sections;
  const bool own_figure = !sections.empty() && !sections.front().charts.empty();
  if (own_figure) html += section(sections.front(), gallery), sections = sections.subspan(1);
  const std::string ranks = first_look(judged, how, gallery);
  if (!own_figure) html += ranks;
  html += filter(series_name(results), names.size()) + verdicts_html(results);
  if (own_figure && !ranks.empty()) html += "<section>\n<h2>Methods by training loss</h2>\n" + ranks + "</section>\n";
  for (const Section& own : sections) html += section(own, gallery);
  html += section("Results", escape_markup(table_caption(groups, results.trials, how)),
                  scroll_region("Results", html_table(groups, results)));
  if (const TextTable comparisons = comparisons_table(judged); !comparisons.empty())
    html += section(
        escape_markup("Against " + how.control),
        fmt::format("Training losses, seed by seed: both trials have the same data, batches and random draws. A seed "
                    "is won by the lower loss, and a trial that did not train loses. E is the evidence; a verdict "
                    "needs the number beside it, so that the chance of any wrong verdict at one depth is at most "
                    "{:g} %, whenever the study stops. The better method must also be better at the neighbouring "
                    "rates of the other. Differences are medians where both train. comparisons.csv has all pairs.",
                    100 * order_level),
        scroll_region("Against " + how.control, comparisons.html()));
  const bool repeated =
      std::any_of(groups.begin(), groups.end(), [](const TrialGroup& g) { return g.trials.size() > 1; });
  const std::string over_seeds = repeated ? " Geometric mean over seeds." : "";
  const std::vector<Plot> losses = loss_plots(results);
  const bool crowded = std::any_of(losses.begin(), losses.end(), is_crowded);
  const std::string behind = crowded ? " There is a panel for each method, with the other methods in grey." : "";
  std::string loss_caption = "A line is one seed; a thin line that ends in a cross diverged.";
  std::string score_caption;
  if (repeated) {
    loss_caption =
        "Means over the seeds that trained, with bands for their 95 % intervals; seeds that did not train are thin "
        "lines, which end in a cross if the training diverged.";
    score_caption = "Bars are 95 % intervals over seeds. ";
  }
  const bool traced = std::ranges::any_of(losses, [](const Plot& plot) {
    return std::ranges::any_of(plot.series, [](const PlotSeries& s) { return !s.points.empty(); });
  });
  if (!how.off && traced)
    html += section("Training loss",
                    loss_caption + behind +
                        " Long trials are shown as means of consecutive logged steps. Point at a plot to see " +
                        (crowded ? "where its line begins and ends." : "its values."),
                    gallery.show(losses));
  const Measure* score = how.off ? nullptr : score_of(how.measures);
  if (score && (std::ranges::any_of(
                    groups, [&](const TrialGroup& g) { return g.depth() > 0 && g.summary(score->name).n > 0; }) ||
                !traced))
    html += section(escape_markup("Against depth: " + score->title),
                    score_caption + (crowded ? "" : "Methods at one depth are drawn side by side."),
                    gallery.show(score_plots(results, *score)));
  html += layer_sections(results, over_seeds, gallery);
  if (!results.settings.empty()) html += "<section>\n<h2>Settings</h2>\n" + facts(results.settings) + "</section>\n";
  if (!results.notes.empty())
    html += "<section>\n<h2>Provenance</h2>\n" + facts(results.notes, " notes") + "</section>\n";
  report.html = page(results.name, html);
  report.terminal = results_text(results, results.colour);
  return report;
}

}  // namespace plumb::lab
