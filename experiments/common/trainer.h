// The former location of experiments/lab/train/train.h and experiments/lab/problem/evaluate.h, kept for one version.
#pragma once

#include "experiments/lab/problem/evaluate.h"
#include "experiments/lab/train/train.h"
