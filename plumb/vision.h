// Studies of images, in the namespace plumb::vision, and the programs of Plumb as functions, in plumb::lab. This header
// lists the public headers of experiments/vision, and those of nn for the detection of objects.
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

// The detection of objects: boxes, the loss of a set of boxes, and the model DETR with its files.
#include "nn/detection/assignment.h"
#include "nn/detection/boxes.h"
#include "nn/detection/detections.h"
#include "nn/detection/match_sets.h"
#include "nn/detection/set_loss.h"
#include "nn/io/detr_card.h"
#include "nn/models/detr.h"

// The problems of classification and of detection.
#include "experiments/vision/data/coco.h"
#include "experiments/vision/data/detection_set.h"
#include "experiments/vision/problem/detection_problem.h"
#include "experiments/vision/problem/evaluate.h"
#include "experiments/vision/problem/image_problem.h"

// Sections of reports with pictures.
#include "experiments/vision/pictures/pictures.h"

// The programs of Plumb, such as lab::depth_stability.
#include "experiments/programs.h"
