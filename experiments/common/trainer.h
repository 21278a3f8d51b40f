// Where this header was before; for one version.
#pragma once

#include "experiments/lab/train/train.h"
#include "experiments/lab/train/evaluate.h"
