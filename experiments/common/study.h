// Where this header was before; for one version.
#pragma once

#include "experiments/lab/study/study.h"
