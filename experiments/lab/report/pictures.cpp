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
  return picture_section(results, "attention", "What the class attends to",
                         "The first validation images: as they are, with the attention that the class is read from "
                         "(CaiT's last class attention, "
                         "the class token's row in the last block, or the mean over all queries), and with attention "
                         "rolled out through all blocks, "
                         "above its least value. Mean over heads; the largest weight is yellow. First seed.");
}

Section masks_section(const StudyResults& results) {
  return picture_section(results, "masks", "What DropKey drops",
                         "The patches (dark) that four queries of the first image lose in the first step, for one "
                         "head: of the first block, of the "
                         "middle one, and of the last, from top to bottom. One that loses all of them keeps all, "
                         "unless --empty-rows says otherwise. First seed.");
}

}  // namespace plumb::lab
