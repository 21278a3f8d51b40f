#include "experiments/vit/vit.h"

int main(int argc, char** argv) { return plumb::lab::vit(argc, argv); }
