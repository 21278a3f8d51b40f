// The former location of experiments/lab/data/open_data.h, kept for one version.
#pragma once

#include "experiments/lab/data/open_data.h"
