// The former location of experiments/lab/train/trial.h, kept for one version.
#pragma once

#include "experiments/lab/train/trial.h"
