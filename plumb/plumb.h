// Plumb: tensors, gradients, modules, residual methods, optimizers and weight files, in the namespaces plumb and
// plumb::nn. This header lists the public headers of core, autograd and nn. Headers that these headers include, and
// that no list names, are internal. plumb/lab.h adds studies, and plumb/vision.h adds studies of images.
#pragma once

#define PLUMB_VERSION_MAJOR 0
#define PLUMB_VERSION_MINOR 1
#define PLUMB_VERSION_PATCH 0

// Arrays, number formats, devices, errors, scopes and profiles.
#include "core/array.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/enum_names.h"
#include "core/error.h"
#include "core/estimate.h"
#include "core/op_options.h"
#include "core/precision.h"
#include "core/profile.h"
#include "core/random_scope.h"
#include "core/shape.h"

// Tensors, ops and gradients.
#include "autograd/backward.h"
#include "autograd/check_gradients.h"
#include "autograd/checkpoint.h"
#include "autograd/debug.h"
#include "autograd/jacobian.h"
#include "autograd/node.h"
#include "autograd/npy.h"
#include "autograd/ops.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/movement.h"
#include "autograd/ops/reductions.h"
#include "autograd/second_order.h"
#include "autograd/tensor.h"

// Modules and their initial values.
#include "nn/audit.h"
#include "nn/child.h"
#include "nn/evaluation_scope.h"
#include "nn/init.h"
#include "nn/module.h"

// Layers and branches.
#include "nn/layers/attention.h"
#include "nn/layers/attention_maps.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/branch.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/conv_branch.h"
#include "nn/layers/drop_head.h"
#include "nn/layers/drop_key.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/drop_schedule.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/heads.h"
#include "nn/layers/linear.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"
#include "nn/layers/patch_embed.h"
#include "nn/layers/pool2d.h"
#include "nn/layers/sequential.h"
#include "nn/layers/sine_positions.h"
#include "nn/layers/stream.h"
#include "nn/layers/weight_layer.h"

// Residual methods, their gates, and the rules that each method must fulfil.
#include "nn/conformance/method_check.h"
#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/layerscale.h"
#include "nn/gates/method.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"
#include "nn/gates/training_step.h"

// Blocks and stacks.
#include "nn/blocks/block.h"
#include "nn/blocks/junction.h"
#include "nn/blocks/stack.h"

// Models.
#include "nn/models/cait.h"
#include "nn/models/classifier.h"
#include "nn/models/vit.h"

// Optimizers, learning rates and averages of weights.
#include "nn/optim/checkpoint.h"
#include "nn/optim/ema.h"
#include "nn/optim/learning_rate.h"
#include "nn/optim/optimizer.h"

// Files of weights and of models.
#include "nn/io/named_tensors.h"
#include "nn/io/pretrained.h"
#include "nn/io/safetensors.h"
#include "nn/io/weights.h"
