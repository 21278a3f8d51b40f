#include "experiments/attention_maps/attention_maps.h"

int main(int argc, char** argv) { return plumb::lab::attention_maps(argc, argv); }
