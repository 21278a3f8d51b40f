// Includes everything in autograd/: tensors, ops and gradients.
#pragma once

#include "autograd/backward.h"
#include "autograd/check_gradients.h"
#include "autograd/checkpoint.h"
#include "autograd/debug.h"
#include "autograd/jacobian.h"
#include "autograd/node.h"
#include "autograd/npy.h"
#include "autograd/ops.h"
#include "autograd/second_order.h"
#include "autograd/tensor.h"
#include "core/scope.h"
