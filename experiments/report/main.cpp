#include "experiments/common/folders.h"

int main(int argc, char** argv) { return plumb::lab::report(argc, argv); }
