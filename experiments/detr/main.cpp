#include "experiments/detr/detr.h"

int main(int argc, char** argv) { return plumb::lab::detr(argc, argv); }
