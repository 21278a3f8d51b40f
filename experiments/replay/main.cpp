#include "experiments/replay/replay.h"

int main(int argc, char** argv) { return plumb::lab::replay(argc, argv); }
