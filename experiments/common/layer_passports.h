// The former location of experiments/lab/report/layers.h and experiments/lab/signals/layer_probe.h,
// kept for one version.
#pragma once

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
