// Studies of images, in the namespace plumb::vision, and the programs of Plumb as functions, in plumb::lab. This header
// lists the public headers of experiments/vision.
#pragma once

#include "plumb/lab.h"

// Studies of labelled images. The names of plumb::lab are also names of plumb::vision.
#include "experiments/vision/data/lab.h"
#include "experiments/vision/study.h"

// Data sets, and the classification of images.
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/problem/evaluate.h"

// Detection of objects.
#include "experiments/vision/problem/detection_problem.h"

// Sections of reports with pictures.
#include "experiments/vision/pictures/pictures.h"

// The programs of Plumb, such as lab::depth_stability.
#include "experiments/programs.h"
