#include "experiments/stochastic_depth/stochastic_depth.h"

int main(int argc, char** argv) { return plumb::lab::stochastic_depth(argc, argv); }
