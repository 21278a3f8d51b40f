#include "experiments/norm_placement/norm_placement.h"

int main(int argc, char** argv) { return plumb::lab::norm_placement(argc, argv); }
