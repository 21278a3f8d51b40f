// The program of a study: what one call of it does.
#pragma once

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Runs, resumes, looks at (--dry-run), rebuilds or replays a study whose command line is read. Returns the exit status
// (Study::run).
int run_study(const StudyDeclaration& study);

}  // namespace plumb::lab
