// report DIR..: tables and reports anew from the ledgers. --markdown FILE: the tables there, for docs.
#pragma once

namespace plumb::lab {

// The whole program; returns the exit status.
int report(int argc, const char* const* argv);

}  // namespace plumb::lab
