#include "experiments/passport/passport.h"

int main(int argc, char** argv) { return plumb::lab::passport(argc, argv); }
