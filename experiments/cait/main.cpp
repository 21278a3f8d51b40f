#include "experiments/cait/cait.h"

int main(int argc, char** argv) { return plumb::lab::cait(argc, argv); }
