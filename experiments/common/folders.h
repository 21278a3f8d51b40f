// The former location of experiments/merge/merge.h, experiments/replay/replay.h and experiments/report/report.h,
// kept for one version.
#pragma once

#include "experiments/merge/merge.h"
#include "experiments/replay/replay.h"
#include "experiments/report/report.h"
