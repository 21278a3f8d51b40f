#include "experiments/passport/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/page.h"
#include "experiments/lab/report/parts.h"

namespace plumb::lab {
namespace {

using Numbers = std::vector<double>;  // one number for each seed
// Computes the values of a curve from one passport, with x as key. Absent values are NaN or missing.
using Curve = std::function<std::map<double, double>(const LayerStats&)>;

// The plot style of each method. A method has the same style in all plots.
class Styles {
 public:
  explicit Styles(const std::vector<PassportRecord>& records) {
    for (const PassportRecord& r : records) styles_.try_emplace(r.trial.gate, static_cast<int>(styles_.size()));
  }
  int of(const std::string& gate) const { return styles_.at(gate); }
  std::size_t size() const { return styles_.size(); }

 private:
  std::map<std::string, int> styles_;
};

PlotSeries series_of(const PassportGroup& group, int style, const Curve& curve) {
  std::map<double, Numbers> at;
  for (const PassportRecord* r : group.seeds)
    for (const auto& [x, y] : curve(r->passport)) at[x].push_back(y);
  PlotSeries series{.name = group.gate, .style = style};
  for (const auto& [x, values] : at) series.points.push_back(log_mean(x, values));
  return series;
}

bool has_points(const PlotSeries& s) {
  return std::ranges::any_of(s.points, [](const PlotPoint& p) { return std::isfinite(p.y) && p.y > 0; });
}

struct Subject {
  std::string id, title;  // id and title of the plots; the title of each plot begins with the depth
  std::string y_title;
  std::string x_title = "block";
  Curve curve;
  Curve expected = {};  // curve of the predictions, drawn as thin lines
};

// One plot for each depth.
std::vector<Plot> plots_of(const std::vector<PassportGroup>& groups, const Styles& styles, const Subject& subject) {
  std::vector<Plot> plots;
  for (const PassportGroup& g : groups) {
    const std::string id = fmt::format("{}-{}", subject.id, g.depth);
    if (plots.empty() || plots.back().id != id)
      plots.push_back({.id = id,
                       .title = fmt::format("depth {}{}", g.depth, subject.title),
                       .x = {.title = subject.x_title},
                       .y = {.title = subject.y_title, .log = true}});
    if (PlotSeries s = series_of(g, styles.of(g.gate), subject.curve); has_points(s))
      plots.back().series.push_back(std::move(s));
    if (!subject.expected) continue;
    PlotSeries s = series_of(g, styles.of(g.gate), subject.expected);
    s.thin = true, s.kind = "expected";
    if (has_points(s)) plots.back().series.push_back(std::move(s));
  }
  std::erase_if(plots, [](const Plot& p) { return p.series.empty(); });
  share_log_range(plots);
  return plots;
}

// A curve by block: one number of the attention branches or of the MLP branches.
Curve by_block(const char* branch, std::function<std::optional<double>(const BranchStats&)> value) {
  return [=](const LayerStats& p) {
    std::map<double, double> curve;
    for (const BranchStats& row : p.branches)
      if (row.branch == branch)
        if (const std::optional<double> v = value(row)) curve[static_cast<double>(row.block)] = *v;
    return curve;
  };
}

// A curve of the stream between blocks. x = 0 is the input, and x = l is the output of block l - 1.
Curve stream(double BranchStats::*member) {
  return [=](const LayerStats& p) {
    std::map<double, double> curve{{0, p.input_mean_square}};
    for (const BranchStats& row : p.branches) curve[static_cast<double>(row.block + 1)] = row.*member;
    return curve;
  };
}

std::map<double, double> gradients(const LayerStats& p) {
  std::map<double, double> curve;
  for (std::int64_t b = 0; b < p.depth(); ++b) curve[static_cast<double>(b)] = block_figures(p, b).grad_norm;
  return curve;
}

// Three significant digits, because the table has many columns.
std::string cell(double v) {
  return fmt::format(R"(<td class="num">{}</td>)",
                     std::isfinite(v) ? escape_markup(short_number(rounded_to(v, 3))) : "–");
}

std::string html_table(const std::vector<PassportGroup>& groups, Moment moment) {
  const bool fresh = moment == Moment::fresh;
  std::string html =
      R"(<table class="results"><thead><tr><th>gate</th><th class="num">depth</th><th class="num">stream²</th>)"
      R"(<th class="num">law</th><th class="num">g/x first</th><th class="num">middle</th><th class="num">last</th>)"
      R"(<th class="num">grad first</th><th class="num">last</th>)";
  html +=
      fresh
          ? R"(<th class="num">J²</th><th class="num">± s.e.</th><th>its law</th></tr></thead><tbody>)"
          : R"(<th class="num">entropy</th><th class="num">logit</th><th class="num">loss</th><th>outcome</th></tr></thead><tbody>)";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PassportGroup& g = groups[i];
    const PassportSummary s = summarize(g);
    html += fmt::format(R"(<tr{}{}><td>{}</td><td class="num">{}</td>)",
                        i > 0 && groups[i - 1].depth != g.depth ? R"( class="rule")" : "", svg::belongs_to(g.gate),
                        escape_markup(g.gate), g.depth);
    for (double v : {s.mean_square, s.predicted, s.ratio[0], s.ratio[1], s.ratio[2], s.grad_norm[0], s.grad_norm[1]})
      html += cell(v);
    if (fresh) {
      html += cell(s.jacobian.value_or(std::nan(""))) + cell(s.jacobian_error.value_or(std::nan("")));
      html += s.findings.empty() ? "<td>followed</td>" : R"(<td class="bad">not followed</td>)";
    } else {
      const auto diverged =
          std::ranges::count_if(g.seeds, [](const PassportRecord* r) { return !r->divergence.empty(); });
      html += cell(s.entropy) + cell(s.largest_logit) + cell(s.loss);
      html += diverged == 0 ? "<td>ok</td>"
                            : fmt::format(R"(<td class="bad">{} of {} diverged</td>)", diverged, g.seeds.size());
    }
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

std::string verdict(const std::vector<PassportGroup>& fresh) {
  if (fresh.empty()) return "<p class=\"verdict\">No network has a passport yet.</p>\n";
  std::string list;
  int found = 0;
  for (const PassportGroup& g : fresh) {
    const std::vector<std::string> findings = summarize(g).findings;
    found += !findings.empty();
    for (const std::string& f : findings)
      list += fmt::format("<li>{}, depth {}: {}.</li>", escape_markup(g.gate), g.depth, escape_markup(f));
  }
  if (found == 0)
    return fmt::format(
        "<p class=\"verdict\">{} follows the growth law of its method: after every branch, the mean square of the "
        "stream "
        "differs by a factor of at most {:g} from the prediction.</p>\n",
        fresh.size() == 1 ? "The fresh network" : fmt::format("Each of the {} kinds of fresh network", fresh.size()),
        law_tolerance);
  return fmt::format(
      "<p class=\"verdict\">{} of {} kinds of fresh network {} not follow the growth law of {} method.</p>\n<ul "
      "class=\"verdicts\">{}</ul>\n",
      found, fresh.size(), found == 1 ? "does" : "do", found == 1 ? "its" : "their", list);
}

std::vector<Plot> both_branches(const std::vector<PassportGroup>& groups, const Styles& styles, const std::string& id,
                                const std::string& y_title,
                                const std::function<std::optional<double>(const BranchStats&)>& value) {
  std::vector<Plot> attention = plots_of(
      groups, styles,
      {.id = id + "-attn", .title = ", attention branch", .y_title = y_title, .curve = by_block("attn", value)});
  const std::vector<Plot> mlp =
      plots_of(groups, styles,
               {.id = id + "-mlp", .title = ", MLP branch", .y_title = y_title, .curve = by_block("mlp", value)});
  std::vector<Plot> plots;
  for (std::size_t i = 0; i < std::max(attention.size(), mlp.size()); ++i) {
    if (i < attention.size()) plots.push_back(attention[i]);
    if (i < mlp.size()) plots.push_back(mlp[i]);
  }
  share_log_range(plots);
  return plots;
}

std::string section_unless_empty(Gallery& gallery, const std::string& title, const std::string& caption,
                                 const std::vector<Plot>& plots) {
  return plots.empty() ? std::string() : section(title, caption, gallery.show(plots));
}

// The plots of one moment. The titles of the plots end with `when`, such as "at init".
std::string plot_sections(Gallery& gallery, const std::vector<PassportGroup>& groups, const Styles& styles,
                          Moment moment, const std::string& when) {
  const bool fresh = moment == Moment::fresh;
  const std::string id = fresh ? "fresh" : "last";
  Subject size{.id = id + "-stream",
               .title = "",
               .y_title = "mean square of x, log scale",
               .x_title = "blocks passed",
               .curve = stream(&BranchStats::mean_square)};
  if (fresh) size.expected = stream(&BranchStats::predicted_mean_square);
  std::string html = section_unless_empty(
      gallery, "Size of the stream " + when,
      std::string("Mean square of the residual stream, from the input of the first block to the output of the last.") +
          (fresh ? " Thin lines are predictions by the method's growth law, from the network's input and the output of "
                   "the first block. If a thin line is not visible, it lies under the measured line."
                 : ""),
      plots_of(groups, styles, size));
  html +=
      section_unless_empty(gallery, "Branch against stream " + when,
                           "The norm of the term that a branch adds to the residual stream, divided by the norm of the "
                           "stream, by block. A log scale cannot show a branch that adds nothing. Some methods also "
                           "scale the stream: the column change of passport.csv is the norm of the whole change by the "
                           "residual sum, before a post-norm, divided by the norm of the stream.",
                           both_branches(groups, styles, id + "-ratio", "‖g(x)‖ / ‖x‖, log scale",
                                         [](const BranchStats& b) { return std::optional(b.ratio); }));
  html += section_unless_empty(
      gallery, "Gradients " + when,
      "Norm of the gradient of the loss with respect to the weights and biases of a block's two branches. A log "
      "scale cannot show zero.",
      plots_of(groups, styles,
               {.id = id + "-gradient", .title = "", .y_title = "gradient norm, log scale", .curve = gradients}));
  return html;
}

// A curve by step: one number from each passport of a training.
std::vector<Plot> plots_by_step(const std::vector<PassportRecord>& records, const Styles& styles, const std::string& id,
                                const std::string& y_title, const std::function<double(const LayerStats&)>& value) {
  std::map<std::int64_t, std::map<std::string, std::map<double, Numbers>>> at;  // keys: depth, gate, step
  for (const PassportRecord& r : records)
    at[r.trial.depth][r.trial.gate][static_cast<double>(r.step)].push_back(value(r.passport));
  std::vector<Plot> plots;
  for (const auto& [depth, gates] : at) {
    Plot plot{.id = fmt::format("{}-{}", id, depth),
              .title = fmt::format("depth {}", depth),
              .x = {.title = "step"},
              .y = {.title = y_title, .log = true}};
    for (const auto& [gate, steps] : gates) {
      PlotSeries series{.name = gate, .style = styles.of(gate)};
      for (const auto& [step, values] : steps) series.points.push_back(log_mean(step, values));
      if (has_points(series)) plot.series.push_back(std::move(series));
    }
    std::ranges::sort(plot.series, {}, &PlotSeries::style);
    if (!plot.series.empty()) plots.push_back(std::move(plot));
  }
  share_log_range(plots);
  return plots;
}

// The mean of an optional number over the branches that have it.
double mean_over_branches(const LayerStats& p, std::optional<double> BranchStats::*member) {
  Numbers values;
  for (const BranchStats& row : p.branches)
    if (row.*member) values.push_back(*(row.*member));
  return summarize(values).mean;
}

double largest_logit(const LayerStats& p) {
  double largest = std::nan("");
  for (const BranchStats& row : p.branches)
    if (row.largest_logit && !(largest >= *row.largest_logit)) largest = *row.largest_logit;
  return largest;
}

std::vector<Plot> entropy_plots(const std::vector<PassportRecord>& records, const Styles& styles) {
  std::vector<Plot> plots = plots_by_step(records, styles, "steps-entropy", "entropy / ln T", [](const LayerStats& p) {
    return mean_over_branches(p, &BranchStats::relative_entropy);
  });
  for (Plot& p : plots) p.y = {.title = p.y.title, .low = 0, .high = 1};
  return plots;
}

std::string training_sections(Gallery& gallery, const std::vector<PassportRecord>& records, const Styles& styles) {
  return section_unless_empty(
             gallery, "Updates while training",
             "The change of a branch's weights and biases by one optimizer step, divided by their norm: mean over all "
             "branches.",
             plots_by_step(records, styles, "steps-update", "‖Δp‖ / ‖p‖, log scale",
                           [](const LayerStats& p) { return mean_over_branches(p, &BranchStats::update); })) +
         section_unless_empty(
             gallery, "Attention while training",
             "Largest logit q·k/√d of all blocks, from the first four samples of the batch. If logits grow without "
             "bound, attention ends in one key.",
             plots_by_step(records, styles, "steps-logit", "largest logit, log scale", largest_logit)) +
         section_unless_empty(gallery, "Entropy of attention while training",
                              "Mean entropy over blocks, heads and queries, divided by ln T for T tokens; 1 is uniform "
                              "attention. From the first four samples of the batch.",
                              entropy_plots(records, styles));
}

}  // namespace

Report render_passports(const PassportReport& input) {
  Report report;
  Gallery gallery(report.figures);
  const Styles styles(input.records);
  const std::vector<PassportGroup> fresh = passport_groups(input.records, Moment::fresh),
                                   last = passport_groups(input.records, Moment::last);
  const bool repeated = std::ranges::any_of(fresh, [](const PassportGroup& g) { return g.seeds.size() > 1; });
  std::string html = verdict(fresh) + filter("gate", styles.size());
  if (!input.settings.empty()) html += "<section>\n<h2>Settings</h2>\n" + facts(input.settings) + "</section>\n";
  const std::string means = repeated ? " Geometric means over seeds." : "";
  html +=
      section("Networks at init",
              "stream²: mean square of the stream after the last branch; law: its prediction by the method's growth "
              "law. g/x: norm of the terms that the branches of the first, middle and last block add, divided by the "
              "norm of the stream. grad: gradient norm of the first and last block's branches. J²: mean squared "
              "singular value of the Jacobian of the blocks (1 for the identity), with its standard error (s.e.). its "
              "law: whether the network follows its growth law." +
                  means,
              scroll_region("Networks at init", html_table(fresh, Moment::fresh)));
  html += plot_sections(gallery, fresh, styles, Moment::fresh, "at init");
  if (!last.empty()) {
    html +=
        section("Networks at the last passport",
                "The columns of the table above, at the last passport of the training. entropy: lowest entropy of all "
                "blocks, divided by ln T; logit: largest attention logit; loss: of the batch." +
                    means,
                scroll_region("Networks at the last passport", html_table(last, Moment::last)));
    html += training_sections(gallery, input.records, styles) +
            plot_sections(gallery, last, styles, Moment::last, "at the last passport");
  }
  if (!input.notes.empty()) html += "<section>\n<h2>Provenance</h2>\n" + facts(input.notes, " notes") + "</section>\n";
  report.html = page(input.title, html);
  return report;
}

}  // namespace plumb::lab
