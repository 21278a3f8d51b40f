// The programs of Plumb as functions. experiments/<name>/<name>.cpp defines the function <name>, and the build makes
// the program bin/<name> from it. If your own program registers methods before it calls a function, --gate and --gates
// accept these methods:
//
//   int main(int argc, char** argv) {
//     plumb::nn::register_method<MyGate>("my_gate");
//     return plumb::lab::depth_stability(argc, argv);
//   }
//
// Each function runs the whole program: command line, study folder, training, tables and report. It returns the exit
// status: 0 if no trial failed (a divergence is a result, not a failure), 1 for an error at run time, 2 for an error on
// the command line, 130 or 143 after an interrupt.
#pragma once

namespace plumb::lab {

// Draws the attention of a trained ViT or CaiT over images (docs/weights.md). An unreadable image file is an error.
int attention_maps(int argc, const char* const* argv);

// Compares positions of the class token: designs x seeds (docs/ablations/class_attention.md).
int class_attention(int argc, const char* const* argv);

// Compares four kinds of deep fully connected networks: methods x depths x seeds (docs/deep_mlp.md).
int deep_mlp(int argc, const char* const* argv);

// Finds the largest depth at which each method trains: methods x learning rates x seeds, with a search for the depth
// (docs/ablations/depth_limit.md).
int depth_limit(int argc, const char* const* argv);

// Tests which residual methods train at which depth: methods x depths x learning rates x seeds on one data set.
int depth_stability(int argc, const char* const* argv);

// Compares DropKey with dropout of attention in a DETR: forms x schedules x places x seeds (docs/ablations/detr.md).
int detr(int argc, const char* const* argv);

// Compares dropping keys before the softmax with dropout after it: forms x rates x schedules x seeds
// (docs/ablations/drop_key.md).
int drop_key(int argc, const char* const* argv);

// Tests which of Fixup's rules a training needs: sets of rules x depths x seeds (docs/ablations/fixup_scalars.md).
int fixup_scalars(int argc, const char* const* argv);

// Tests whether LayerScale's initial value matters: depths x methods x initial values x warm-ups x seeds
// (docs/ablations/layerscale_init.md).
int layerscale_init(int argc, const char* const* argv);

// merge DIR.. --out DIR: merges the ledgers of folders with the same experiment, settings and data into a new folder.
int merge(int argc, const char* const* argv);

// Compares placements of the norm, with and without a warm-up: methods x depths x warm-ups x learning rates x seeds
// (docs/ablations/norm_placement.md).
int norm_placement(int argc, const char* const* argv);

// Measures how signals and gradients pass through residual networks, at init and during training: methods x depths x
// seeds on one data set. A network that does not follow its growth law is a result, not a failure.
int passport(int argc, const char* const* argv);

// replay DIR 'TRIAL': repeats the end of a diverged trial.
int replay(int argc, const char* const* argv);

// report DIR..: writes the tables and reports of studies again, from their ledgers.
int report(int argc, const char* const* argv);

// Measures how much each branch adds to the stream, layer by layer: methods x depths x seeds
// (docs/ablations/residual_ratio.md).
int residual_ratio(int argc, const char* const* argv);

// Finds the learning rates at which each method trains: methods x depths x seeds, with a search for the learning rates
// (docs/ablations/stability_map.md).
int stability_map(int argc, const char* const* argv);

// Compares rates of stochastic depth and their schedules over depth: depths x rates x schedules x seeds
// (docs/ablations/stochastic_depth.md).
int stochastic_depth(int argc, const char* const* argv);

// Trains a ViT or a CaiT with any residual method. Also evaluates trained weights or continues their training
// (docs/weights.md).
int vit(int argc, const char* const* argv);

}  // namespace plumb::lab
