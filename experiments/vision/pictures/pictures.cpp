#include "experiments/vision/pictures/pictures.h"

namespace plumb::vision {

std::function<Section(const StudyResults&)> picture_section(const std::string& name, const std::string& title,
                                                            const std::string& caption) {
  return [=](const StudyResults& results) {
    Section section{.title = title, .caption = caption};
    for (std::size_t i = 0; i < results.records.size(); ++i)
      for (const auto& [attached_as, png] : results.attached[i].pictures)
        if (attached_as == name) section.pictures.push_back({results.records[i].point.without("seed").label(), png});
    return section;
  };
}

Section attention_section(const StudyResults& results) {
  return picture_section("attention", "Attention maps",
                         "The first validation images: the image, the attention from which the class is predicted "
                         "(CaiT's last class attention, the class token's row in the last block, or the mean over all "
                         "queries), and the attention rolled out through all blocks, minus its smallest value. The "
                         "maps are means over heads; the largest weight is yellow. Trials of the first seed.")(results);
}

Section masks_section(const StudyResults& results) {
  return picture_section(
      "masks", "Keys dropped by DropKey",
      "The patches (dark) whose keys four queries of the first image lose in the first step, for "
      "one head of the first, the middle and the last block (top to bottom). A query that would "
      "lose all keys keeps them all, unless --empty-rows is given. Trials of the first seed.")(results);
}

}  // namespace plumb::vision
