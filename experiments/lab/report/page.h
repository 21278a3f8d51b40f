// The frame of a report: a single HTML file that works in any browser without a network, in light and dark mode, at
// widths from 390 px. A short script adds a filter by method, sorting of tables by a click, and highlighting under the
// pointer. Without the script the page is still complete.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Gallery;

// The whole HTML file. `title` is plain text, `body` is markup. Elements that belong to one method name it in their
// attribute data-of.
std::string page(const std::string& title, const std::string& body);

// A section of the body; all three arguments are markup.
std::string section(const std::string& title, const std::string& caption, const std::string& content);
// A section with the table, charts and pictures of `own`; empty if it has none.
std::string section(const Section& own, Gallery& gallery);
// A list of names and values, which are plain text.
std::string facts(const NamedTexts& texts, const char* extra_class = "");
// A table that scrolls sideways on a narrow page. `label` is plain text.
std::string scroll_region(const std::string& label, const std::string& table);
// A field that filters the page by names of `what`; empty for at most six names. It is hidden without the script.
std::string filter(const std::string& what, std::size_t count);
// Charts side by side.
std::string grid(const std::vector<std::string>& svgs);

// Renders charts for a page, and keeps them as figures, which are also written to files.
class Gallery {
 public:
  explicit Gallery(std::vector<Figure>& kept) : kept_(&kept) {}
  // The <svg> of one chart.
  template <class T>
  std::string svg(const T& chart) {
    return kept_->emplace_back(figure_of(chart)).svg;
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
