// Programs about folders of runs, whatever program wrote them: bin/merge, bin/report, bin/replay.
#pragma once

namespace plumb::lab {

// All return the exit status. What a study's tables and reports look like, its own program knows: run.json names it, and it is run with --config
// DIR/run.json --out DIR and --rebuild or --replay. It is looked for beside the program that runs now, too.

// merge DIR.. --out DIR: the ledgers of folders with the same experiment, settings and data in one. A run that several have is taken once; UsageError
// where they have results of it that differ in more than times. Names machines where they differ, and how many runs are missing. The folders stay as
// they are.
int merge(int argc, const char* const* argv);
// report DIR..: tables and reports anew from the ledgers. --markdown FILE: the tables there, for docs.
int report(int argc, const char* const* argv);
// replay DIR 'RUN': replay.h.
int replay(int argc, const char* const* argv);

}  // namespace plumb::lab
