// Pictures that trials attached (signals/attention_images.h, signals/mask_images.h), as sections of a report; without
// pictures where none did.
#pragma once

#include <string>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// All that were attached under `name`.
Section picture_section(const StudyResults& results, const std::string& name, const std::string& title,
                        const std::string& caption);
Section attention_section(const StudyResults& results);
Section masks_section(const StudyResults& results);

}  // namespace plumb::lab
