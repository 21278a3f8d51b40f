// Where this header was before; for one version.
#pragma once

#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
