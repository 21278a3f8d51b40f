// The code of experiments/vision names the types of the laboratory without their namespace.
#pragma once

namespace plumb::lab {}

namespace plumb::vision {
using namespace lab;
}
