#include "experiments/deep_mlp/deep_mlp.h"

int main(int argc, char** argv) { return plumb::lab::deep_mlp(argc, argv); }
