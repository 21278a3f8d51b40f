// Parts of attention that no instruction set touches.
#pragma once

#include <algorithm>

#include "core/backend.h"

namespace plumb::cpu {

// 1 / (1 - p) of attention dropout; nothing survives p = 1.
inline float survivor_scale(const AttentionCall& call) {
  const std::uint32_t t = call.dropout.threshold;
  return t >= 65536 ? 0.0f : static_cast<float>(1 / (1 - t / 65536.0));
}

// (sample, head) pairs a parallel block: at least about 20 us of work.
inline std::int64_t attention_grain(const AttentionCall& call) {
  return std::max<std::int64_t>(1, 500'000 / std::max<std::int64_t>(1, call.queries * call.keys * call.head_dim));
}

}  // namespace plumb::cpu
