// The combinations of values on the axes of a study.
#pragma once

#include <vector>

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// The combinations of values on the axes that are not searched, without the seed, in the order of the trials. Throws
// UsageError if there is no combination.
std::vector<Point> combinations_of(const StudyDeclaration& study);
// The combinations without the axis "lr", each once, with their values in the order of the columns.
std::vector<Point> cells_of(const StudyDeclaration& study);
// The place of a search for a learning rate: a combination without the axes of Study::one_rate_for(), whose values
// share a rate; and all places of the study.
Point place_of(const StudyDeclaration& study, Point cell);
std::vector<Point> places_of(const StudyDeclaration& study);

}  // namespace plumb::lab
