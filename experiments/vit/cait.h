// The CaiT of bin/vit --model cait: the options of its own, and the published presets with the source of each constant.
#pragma once

#include "experiments/vit/settings.h"
#include "nn/models/cait.h"

namespace plumb::vision {

// Declares the options of a CaiT, the presets of all published CaiTs, and the listings of these presets. With --model
// cait, the defaults of all options are those of the preset cait-paper-xxs24.
void declare_cait(VitSettings& o, Study& study);

// Sets the values that the published recipe computes from the size of the network and the length of the training.
void derive_cait(VitSettings& o, Study& study);

// Prints the settings of DropKey on stderr.
void note_drop_key(const VitSettings& o, const NetworkOptions& network, const ImageSet& images);

// Returns the options of a CaiT that has `vit` in common with a ViT.
nn::CaiTOptions cait_options(const VitSettings& o, const nn::ViTOptions& vit);

// Returns DropKey's statistics of the current step, as means over the attention layers of stage 1.
Values dropped_keys(const nn::CaiT& model, std::int64_t batch);

}  // namespace plumb::vision
