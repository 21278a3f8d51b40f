// Draws the attention of a trained ViT or CaiT over images (docs/weights.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call may appear in weights files.
//   int main(int argc, char** argv) { return plumb::lab::attention_maps(argc, argv); }
// Returns the exit status: 0 if all went well, 1 for an error at run time or an unreadable image file, 2 for an error
// on the command line.
int attention_maps(int argc, const char* const* argv);

}  // namespace plumb::lab
