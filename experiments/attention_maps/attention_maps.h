// Draws what a trained ViT or CaiT attends to (docs/weights.md).
#pragma once

namespace plumb::lab {

// The whole program. Methods that were registered before are read from files.
//   int main(int argc, char** argv) { return plumb::lab::attention_maps(argc, argv); }
// Returns the exit status: 0, 1 for what went wrong at run time or a file that cannot be read, 2 for what is wrong on
// the command line.
int attention_maps(int argc, const char* const* argv);

}  // namespace plumb::lab
