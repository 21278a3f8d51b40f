#include "experiments/depth_limit/depth_limit.h"

int main(int argc, char** argv) { return plumb::lab::depth_limit(argc, argv); }
