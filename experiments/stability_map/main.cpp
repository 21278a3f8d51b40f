#include "experiments/stability_map/stability_map.h"

int main(int argc, char** argv) { return plumb::lab::stability_map(argc, argv); }
