// report DIR..: writes the tables and reports of studies again, from their ledgers. With --markdown FILE the tables are
// also written as Markdown.
#pragma once

namespace plumb::lab {

// Runs the whole program and returns the exit status.
int report(int argc, const char* const* argv);

}  // namespace plumb::lab
