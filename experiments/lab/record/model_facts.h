// The facts about a trained model, for the record of its trial and for the settings in reports. They include the
// settings that the study body has fixed.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "nn/models/vit.h"

namespace plumb::lab {

// A JSON object with the number of parameters and, for a ViT or a CaiT, the model card (nn/io/pretrained.h: sizes,
// gate, pool, ...), or, for another module, its name.
std::string model_facts(const nn::Module& model);
// The same object for a ViT with these options, without the number of parameters.
std::string model_facts(const nn::ViTOptions& options);

// Text for reports: "vit, image 32, dim 64, depth 6 or 12, gate post, ..., parameters 1234". A fact that differs
// between the records has all its values, or "varied" if there are more than four. Empty if no record has facts.
std::string describe_models(const std::vector<Record>& records);

}  // namespace plumb::lab
