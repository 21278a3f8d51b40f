// Where and in which number format a call computes: what --device and --dtype mean.
#pragma once

#include <string>

#include "core/array.h"
#include "core/precision.h"

namespace plumb::lab {

// What products run in under --dtype; of bf16, stderr gets by which instructions.
Precision precision_for(const std::string& dtype, Device device);
Precision precision_of(const std::string& dtype);  // the same without a word
// Throws an Error that says what cuda lacks, if it does; for another name than those of StudyChoices too.
Device device_named(const std::string& name);
// cuda, where it can be used, else cpu; stderr gets a line that says what is missing.
Device best_device();

}  // namespace plumb::lab
