#include "experiments/merge/merge.h"

int main(int argc, char** argv) { return plumb::lab::merge(argc, argv); }
