#include "experiments/lab/report/pictures.h"

#include <nlohmann/json.hpp>

namespace plumb::lab {

Section picture_section(const StudyResults& results, const std::string& name, const std::string& title,
                        const std::string& caption) {
  Section section{.title = title, .caption = caption};
  for (const Record& record : results.records)
    for (const std::string& text : record.attachments)
      if (const auto json = nlohmann::json::parse(text); json.contains(name))
        section.pictures.push_back({record.point.without("seed").label(), json.at(name)});
  return section;
}

Section attention_section(const StudyResults& results) {
  return picture_section(results, "attention", "Attention maps",
                         "The first validation images: the image, the attention from which the class is predicted "
                         "(CaiT's last class attention, the class token's row in the last block, or the mean over all "
                         "queries), and the attention rolled out through all blocks, minus its smallest value. The "
                         "maps are means over heads; the largest weight is yellow. Trials of the first seed.");
}

Section masks_section(const StudyResults& results) {
  return picture_section(results, "masks", "Keys dropped by DropKey",
                         "The patches (dark) whose keys four queries of the first image lose in the first step, for "
                         "one head of the first, the middle and the last block (top to bottom). A query that would "
                         "lose all keys keeps them all, unless --empty-rows is given. Trials of the first seed.");
}

}  // namespace plumb::lab
