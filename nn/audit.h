// Checks that a fresh model has the initial values that its modules declare.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Compares every parameter, bit for bit, with the values that its declared Init gives for (seed, name). A difference
// means that a parameter was initialised twice, was forgotten, or was changed after initialize(). Throws one Error that
// lists every tensor that differs, with its declaration and its value. Call audit_init() before calibrate(), because
// calibrate() sets values that depend on data.
void audit_init(const Module& module, std::uint64_t seed);

}  // namespace plumb::nn
