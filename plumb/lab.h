// The laboratory: studies with axes, claims, trials and reports, in the namespace plumb::lab. This header lists the
// public headers of experiments/lab.
#pragma once

#include "plumb/plumb.h"

// Studies: axes, options of the command line, and claims.
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/cli/option.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/options/optimizer_options.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/study/axis.h"
#include "experiments/lab/study/search.h"
#include "experiments/lab/study/study.h"

// Trials: the part of a study that its body trains.
#include "experiments/lab/train/loop.h"
#include "experiments/lab/train/observer.h"
#include "experiments/lab/train/trial.h"

// Problems: data, loss and measures.
#include "experiments/lab/problem/problem.h"
#include "experiments/lab/record/chance.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/measure.h"

// Results: records, groups of trials, verdicts.
#include "experiments/lab/record/point.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/difference.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/rate_choice.h"
#include "experiments/lab/stats/summary.h"
#include "experiments/lab/stats/verdict.h"

// Tables, charts, sections and files that a study makes from its results.
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"

// Measurements inside a stack of blocks.
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/signals/probe.h"
