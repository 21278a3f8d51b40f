#include "experiments/depth_stability/depth_stability.h"

int main(int argc, char** argv) { return plumb::lab::depth_stability(argc, argv); }
