// Studies of images, in the namespace plumb::vision, and the programs of Plumb as functions, in plumb::lab. This header
// lists the public headers of experiments/vision.
#pragma once

#include "plumb/lab.h"

// Studies of labelled images, and their options. The names of plumb::lab are also names of plumb::vision.
#include "experiments/vision/data/lab.h"
#include "experiments/vision/options/augment_options.h"
#include "experiments/vision/options/drop_options.h"
#include "experiments/vision/options/image_options.h"
#include "experiments/vision/options/network_options.h"
#include "experiments/vision/study.h"

// Data sets and batches of images.
#include "experiments/vision/data/augmentation.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/image_ops.h"
#include "experiments/vision/data/image_set.h"
#include "experiments/vision/data/open_data.h"

// The classification of images, and the detection of objects.
#include "experiments/vision/data/coco.h"
#include "experiments/vision/data/detection_set.h"
#include "experiments/vision/problem/detection_problem.h"
#include "experiments/vision/problem/evaluate.h"
#include "experiments/vision/problem/image_problem.h"

// Sections of reports with pictures.
#include "experiments/vision/pictures/pictures.h"

// The programs of Plumb, such as lab::depth_stability.
#include "experiments/programs.h"
