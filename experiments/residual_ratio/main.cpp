#include "experiments/residual_ratio/residual_ratio.h"

int main(int argc, char** argv) { return plumb::lab::residual_ratio(argc, argv); }
