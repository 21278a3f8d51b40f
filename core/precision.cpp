#include "core/precision.h"

#include <utility>

namespace plumb {
namespace {

Precision& thread_precision() {
  thread_local Precision p = Precision::f32;
  return p;
}

}  // namespace

Precision precision() { return thread_precision(); }
PrecisionScope::PrecisionScope(Precision precision) : saved_(std::exchange(thread_precision(), precision)) {}
PrecisionScope::~PrecisionScope() { thread_precision() = saved_; }

}  // namespace plumb
