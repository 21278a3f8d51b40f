// The former location of experiments/lab/report/curves.h, kept for one version.
#pragma once

#include "experiments/lab/report/curves.h"
