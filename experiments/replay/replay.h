// replay DIR 'TRIAL': repeats the end of a diverged trial (lab/study/replay.h).
#pragma once

namespace plumb::lab {

// Runs the whole program and returns the exit status.
int replay(int argc, const char* const* argv);

}  // namespace plumb::lab
