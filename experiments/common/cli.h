// The former location of experiments/lab/cli/cli.h, kept for one version.
#pragma once

#include "experiments/lab/cli/cli.h"
