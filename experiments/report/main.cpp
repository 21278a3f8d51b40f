#include "experiments/report/report.h"

int main(int argc, char** argv) { return plumb::lab::report(argc, argv); }
