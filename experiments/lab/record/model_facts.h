// The model that a trial trained, for its record and for the settings of reports. It shows what the body fixed.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "nn/models/vit.h"

namespace plumb::lab {

// A JSON object: of a ViT or a CaiT its card (nn/io/pretrained.h: sizes, gate, pool, ...), of another module its name;
// and the number of parameters.
std::string model_facts(const nn::Module& model);
// The same of a ViT that a body has asked for, without the number.
std::string model_facts(const nn::ViTOptions& options);

// "vit, image 32, dim 64, depth 6 or 12, gate post, ..., parameters 1234": what differs between the records, "varied"
// where it takes more than four values. Empty if no record says what was trained.
std::string describe_models(const std::vector<Record>& records);

}  // namespace plumb::lab
