// The former location of experiments/lab/study/study.h, kept for one version.
#pragma once

#include "experiments/lab/study/study.h"
