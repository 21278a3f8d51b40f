// The former location of experiments/lab/signals/probe.h, kept for one version.
#pragma once

#include "experiments/lab/signals/probe.h"
