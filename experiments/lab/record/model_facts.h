// Facts about a trained model, for the record of its trial and for the settings in reports. The facts include the
// settings that are fixed in the code of a study.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "nn/models/vit.h"

namespace plumb::lab {

// A JSON object with the number of parameters. For a ViT, a CaiT or a Detr, the object also has the model card (sizes,
// gate, pool, ...). For any other module, the object has the name of the module.
std::string model_facts(const nn::Module& model);
// The same JSON object without the number of parameters, for a ViT with the given options.
std::string model_facts(const nn::ViTOptions& options);

// A text for reports, such as "vit, image 32, dim 64, depth 6 or 12, gate post, ..., parameters 1234". If a fact
// differs between the records, the text has all values of the fact, or "varied" for more than four values. The text is
// empty if no record has facts.
std::string describe_models(const std::vector<Record>& records);

}  // namespace plumb::lab
