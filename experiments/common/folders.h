// Where this header was before; for one version.
#pragma once

#include "experiments/merge/merge.h"
#include "experiments/replay/replay.h"
#include "experiments/report/report.h"
