// The rule by which a study sets learning rates. A study that compares methods trains each combination of values on its
// axes (a cell) at a rate of its own, which a search chooses (rate_search.h).
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

struct StudyDescription;  // record/study_description.h

// Declares --at-lr and --rates-from if the study trains by Trial::train, has no search of its own and judges methods.
void declare_rates(StudyDeclaration& study);
// Decides how learning rates are chosen (StudyDeclaration::rates), when all options are read. A study with at least two
// cells and four seeds searches; with --at-lr, or fewer cells or seeds, all trials train at the same rates. A call that
// resumes or shows a study folder goes on by the rule of the folder. Throws UsageError if options contradict each other
// or the folder, or if the file of --rates-from lacks a cell.
void settle_rates(StudyDeclaration& study);

// The sentences of the report that say how the rates of the table "Learning rates" were chosen: the end of its title,
// and its caption.
struct RatesText {
  std::string chosen_by, caption;
};
RatesText describe_rates(const StudyDeclaration& study);
// How a study with this run.json chooses learning rates, in words. Studies with different rules cannot be merged.
std::string rule_for_rates(const StudyDescription& run);

}  // namespace plumb::lab
