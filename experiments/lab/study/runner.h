// The steps of a study program after its command line is read.
#pragma once

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Runs, resumes, rebuilds or replays a study, or shows its plan (--dry-run). The command line must have been read.
// Returns the exit status (Study::run).
int run_study(const StudyDeclaration& study);

}  // namespace plumb::lab
