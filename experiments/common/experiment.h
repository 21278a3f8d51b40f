// The former location of experiments/lab/study/experiment.h, kept for one version.
#pragma once

#include "experiments/lab/study/experiment.h"
