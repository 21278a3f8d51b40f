// The laboratory: studies with axes, claims, trials and reports, in the namespace plumb::lab. This header lists the
// public headers of experiments/lab.
#pragma once

#include "plumb/plumb.h"

// Studies: axes, options, claims, and the trial that the body of a study trains.
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/study/study.h"
#include "experiments/lab/train/trial.h"

// Problems: data, loss and measures.
#include "experiments/lab/problem/problem.h"

// Results: records, charts, tables and files that a study makes from them.
#include "experiments/lab/record/csv.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"

// Measurements inside a stack of blocks.
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/signals/probe.h"
