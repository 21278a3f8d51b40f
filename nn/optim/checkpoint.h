// Saves and loads a model with its optimizer between two steps of a training.
#pragma once

#include <filesystem>

#include "nn/io/named_tensors.h"
#include "nn/optim/ema.h"
#include "nn/optim/optimizer.h"

namespace plumb::nn {

// Writes the weights of the model, the state of the optimizer and, if given, the averages to a safetensors file. The
// file is written atomically: an earlier file is replaced completely or not at all. Throws the errors of
// Optimizer::state(), Ema::state() and write_safetensors().
//   nn::save_checkpoint("last.safetensors", model, optimizer);
void save_checkpoint(const std::filesystem::path& path, const Module& model, Optimizer& optimizer,
                     const Ema* ema = nullptr);
// Reads a file of save_checkpoint() into a model, an optimizer and averages that were made as those of the file. The
// training then continues with the same bits as without the interruption: the optimizer has the step count of the file,
// and with it the place in its schedule. A loop starts at optimizer.steps_taken(). The file has neither the options of
// the optimizer nor the factors and frozen() of the parameters. Throws one Error, and changes nothing, if
// save_checkpoint() did not write the file, for another type of optimizer, for averages that only one side has, and if
// names, shapes or dtypes differ.
void load_checkpoint(const std::filesystem::path& path, Module& model, Optimizer& optimizer, Ema* ema = nullptr);

// The state of a training as tensors, for files with further content: copies under the names "model.*", "optimizer.*"
// and, if `ema` is not null, "ema.*".
NamedTensors training_state(const Module& model, Optimizer& optimizer, const Ema* ema = nullptr);
// Restores a state of training_state(). Throws one Error, and changes nothing, if names or shapes differ. The message
// begins with `what`.
void load_training_state(const NamedTensors& state, const std::string& what, Module& model, Optimizer& optimizer,
                         Ema* ema = nullptr);

}  // namespace plumb::nn
