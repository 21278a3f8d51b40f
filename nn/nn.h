// Modules, gates, models, optimizers.
#pragma once

#include "nn/block.h"
#include "nn/drop_key.h"
#include "nn/gates/gate.h"
#include "nn/gates/layerscale.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_head.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/linear.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"
#include "nn/layers/patch_embed.h"
#include "nn/models/vit.h"
#include "nn/optim/optimizer.h"
#include "nn/schedule.h"
