// The program of a study.
#pragma once

#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Runs, resumes, rebuilds or replays a study, or shows its plan (--dry-run). The command line must have been read.
// Returns the exit status (Study::run).
int run_study(const StudyDeclaration& study);

}  // namespace plumb::lab
