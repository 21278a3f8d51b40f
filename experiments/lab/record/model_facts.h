// Facts about a trained model, for the record of its trial and for the settings in reports. The facts include the
// settings that are fixed in the code of a study.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "nn/module.h"

namespace plumb::lab {

// A JSON object with the card of the model (nn::Module::card: sizes, gate, pool, ...), or with the name of a module
// that has no card, and with the number of parameters.
std::string model_facts(const nn::Module& model);

// A text for reports, for example of a ViT: "vit, image 32, dim 64, depth 6 or 12, gate post, ..., parameters 1234". If
// a fact differs between the records, the text has all values of the fact, or "varied" for more than four values. The
// text is empty if no record has facts.
std::string describe_models(const std::vector<Record>& records);

}  // namespace plumb::lab
