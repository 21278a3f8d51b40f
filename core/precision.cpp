// The precision of products, for each thread.
#include "core/precision.h"

namespace plumb {
namespace {

Precision& thread_precision() {
  thread_local Precision p = Precision::f32;
  return p;
}

}  // namespace

Precision precision() { return thread_precision(); }
PrecisionScope::PrecisionScope(Precision precision) : value_(thread_precision(), precision) {}

}  // namespace plumb
