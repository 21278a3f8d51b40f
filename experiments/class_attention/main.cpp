#include "experiments/class_attention/class_attention.h"

int main(int argc, char** argv) { return plumb::lab::class_attention(argc, argv); }
