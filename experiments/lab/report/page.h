// The frame of a report. A report is a single HTML file that works in any browser without a network, in light and dark
// mode, at widths from 390 px. A short script adds a filter by method, sorting of tables by a click, and highlighting
// under the pointer. Without the script the page is still complete.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/data_facts.h"

namespace plumb::lab {

class Gallery;

// The whole HTML file. `title` is plain text, `body` is HTML markup. Elements that belong to one method name the method
// in the attribute data-of.
std::string page(const std::string& title, const std::string& body);

// A section of the body. All three arguments are HTML markup.
std::string section(const std::string& title, const std::string& caption, const std::string& content);
// A section with the table, charts and pictures of `own`. Empty if `own` has none of these.
std::string section(const Section& own, Gallery& gallery);
// A list of names and values. Names and values are plain text.
std::string facts(const NamedTexts& texts, const char* extra_class = "");
// A table in a frame that scrolls sideways on a narrow page. `label` is plain text, `table` is HTML markup.
std::string scroll_region(const std::string& label, const std::string& table);
// An input field that filters the page by name. `what` is the kind of the names, such as "gate". `count` is the number
// of names; for at most six names the result is empty. The field is hidden if the script does not run.
std::string filter(const std::string& what, std::size_t count);
// Charts side by side.
std::string grid(const std::vector<std::string>& svgs);

// Renders charts for a page. Each chart is also kept as a figure, because figures are written to files as well.
class Gallery {
 public:
  explicit Gallery(std::vector<Figure>& kept) : kept_(&kept) {}
  // The <svg> of one chart.
  std::string svg(Figure chart) { return kept_->emplace_back(std::move(chart)).svg; }
  template <class T>
  std::string svg(const T& chart) {
    return svg(figure_of(chart));
  }
  // Several charts side by side.
  template <class T>
  std::string show(const std::vector<T>& charts) {
    std::vector<std::string> svgs;
    for (const T& chart : charts) svgs.push_back(svg(chart));
    return grid(svgs);
  }

 private:
  std::vector<Figure>* kept_;
};

}  // namespace plumb::lab
