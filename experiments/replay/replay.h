// replay DIR 'RUN': the end of a run that diverged again (lab/study/replay.h).
#pragma once

namespace plumb::lab {

// The whole program; returns the exit status.
int replay(int argc, const char* const* argv);

}  // namespace plumb::lab
