// Sections of a report with pictures that trials attached (attention_images.h, mask_images.h).
#pragma once

#include <functional>
#include <string>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/vision/data/lab.h"

namespace plumb::vision {

// Returns the function for Study::output() that makes a section with all pictures that trials attached under `name`.
// The section has no pictures if no trial attached one.
std::function<Section(const StudyResults&)> picture_section(const std::string& name, const std::string& title,
                                                            const std::string& caption);
// attention_section() shows attention maps; masks_section() shows DropKey masks.
Section attention_section(const StudyResults& results);
Section masks_section(const StudyResults& results);

}  // namespace plumb::vision
