// The former location of experiments/lab/train/train.h and experiments/lab/train/evaluate.h, kept for one version.
#pragma once

#include "experiments/lab/train/evaluate.h"
#include "experiments/lab/train/train.h"
