#include "experiments/drop_key/drop_key.h"

int main(int argc, char** argv) { return plumb::lab::drop_key(argc, argv); }
