#include "experiments/lab/study/folder_programs.h"

int main(int argc, char** argv) { return plumb::lab::report(argc, argv); }
