#include "experiments/fixup_scalars/fixup_scalars.h"

int main(int argc, char** argv) { return plumb::lab::fixup_scalars(argc, argv); }
