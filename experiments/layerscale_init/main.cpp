#include "experiments/layerscale_init/layerscale_init.h"

int main(int argc, char** argv) { return plumb::lab::layerscale_init(argc, argv); }
