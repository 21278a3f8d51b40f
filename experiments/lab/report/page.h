// The frame of a report: one HTML file that holds all it needs and opens in any browser without network, in light and
// dark mode, from 390 px up. A short script adds a filter by method, sorts tables by a click and highlights what is
// pointed at; without it the page is complete.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

class Gallery;

// The whole file; title is plain text, body markup. What belongs to one method says so by data-of.
std::string page(const std::string& title, const std::string& body);

// Parts of a body. Titles and captions are markup, names and values plain text.
std::string section(const std::string& title, const std::string& caption, const std::string& content);
std::string section(const Section& own, Gallery& gallery);  // of a table, charts and pictures; empty without any
std::string facts(const NamedTexts& texts, const char* extra_class = "");
std::string scroll_region(const std::string& label,
                          const std::string& table);             // scrolls sideways where the page is narrow
std::string filter(const std::string& what, std::size_t count);  // a field for more than six; hidden without a script
std::string grid(const std::vector<std::string>& svgs);

// The charts of a page, kept as the figures that are written beside it.
class Gallery {
 public:
  explicit Gallery(std::vector<Figure>& kept) : kept_(&kept) {}
  template <class T>
  std::string svg(const T& chart) {
    return kept_->emplace_back(figure_of(chart)).svg;
  }
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
