// One section of a report: a table, charts and pictures.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/text_table.h"

namespace plumb::lab {

// A PNG image in a report.
struct Picture {
  std::string title, png_base64;
};

// A section of a report. All texts are plain text. The table is shown on the terminal, in results.md and in the report.
// The charts and pictures are shown only in the report. If the first section of a report has charts, they are the main
// figure, below the answer.
struct Section {
  std::string title = {}, caption = {};
  std::string answer = {};  // a sentence that answers the question of the study; the report begins with it
  TextTable table = {};
  std::vector<Figure> charts = {};
  std::vector<Picture> pictures = {};
};

}  // namespace plumb::lab
