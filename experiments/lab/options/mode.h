// The mode of a call, which follows from its options.
#pragma once

#include "experiments/lab/options/study_options.h"

namespace plumb::lab {

// The use that a call makes of the study folder:
//   run        starts the study
//   resume     resumes the study
//   overwrite  deletes the results of the study and starts again
//   dry_run    only checks the call (--dry-run)
//   rebuild    writes tables and report again
//   replay     repeats one trial
enum class Mode { run, resume, overwrite, dry_run, rebuild, replay };

// The mode of the same call without --dry-run.
inline Mode mode_without_dry_run(const StudyOptions& o) {
  return o.rebuild           ? Mode::rebuild
         : !o.replay.empty() ? Mode::replay
         : o.resume          ? Mode::resume
         : o.overwrite       ? Mode::overwrite
                             : Mode::run;
}
// The mode of a call.
inline Mode mode_of(const StudyOptions& o) { return o.dry_run ? Mode::dry_run : mode_without_dry_run(o); }

}  // namespace plumb::lab
