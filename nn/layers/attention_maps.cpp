#include "nn/layers/attention_maps.h"

#include <algorithm>

#include "nn/layers/attention.h"
#include "nn/layers/class_attention.h"

namespace plumb::nn {

AttentionMaps::AttentionMaps(Module& model) {
  const std::size_t own = model.path()->size() + 1;
  model.each_module([&](Module& module) {
    if (const auto* attention = dynamic_cast<AttentionBranch*>(&module))
      handles_.push_back(attention->observe([this, attention, own](const AttentionPass& pass) {
        keep(attention->path()->substr(own), attention->probabilities(pass));
      }));
    if (auto* of_class = dynamic_cast<ClassAttention*>(&module))
      handles_.push_back(of_class->on_forward([this, of_class, own](const Layer&, const Tensor& u, const Tensor&) {
        const NoGrad no_grad;
        keep(of_class->path()->substr(own), of_class->probabilities(u.detach()));
        return Tensor();
      }));
  });
}

void AttentionMaps::keep(const std::string& path, const Tensor& probabilities) {
  const auto known = std::ranges::find(maps_, path, &AttentionMap::path);
  if (known != maps_.end()) maps_.erase(known);
  maps_.push_back({path, probabilities.detach()});
}

Tensor rollout(const std::vector<AttentionMap>& maps) {
  check(!maps.empty(), "[rollout] expected at least one attention map, got none");
  const NoGrad no_grad;
  Tensor through;  // [B, T, T]
  for (const AttentionMap& map : maps) {
    const Tensor& p = map.probabilities;
    const std::int64_t queries = p.dim(2), keys = p.dim(3);
    std::int64_t T = through.defined() ? through.dim(2) : keys;
    const Tensor average = mean(p, {1});  // [B, queries, keys]
    if (queries == 1 && keys == T + 1 && through.defined()) {
      if (&map != &maps.back()) continue;  // each class attention reads the same patches, so only the last map counts
      const Tensor patches = slice(average, 2, 1, keys);
      return matmul(patches / sum(patches, {2}, true), through);
    }
    if (through.defined() && queries == keys &&
        keys == T + 1) {  // a class token has joined, at the position before the patches
      const Defaults where{.dtype = average.dtype(), .device = average.device()};
      const Tensor column = zeros({through.dim(0), T, 1}, where),
                   row = concat({ones({through.dim(0), 1, 1}, where), zeros({through.dim(0), 1, T}, where)}, 2);
      through = concat({row, concat({column, through}, 2)}, 1);
      T = keys;
    }
    check(queries == keys && keys == T, "[rollout] expected maps of {} queries and keys, got {} and {} in {}", T,
          queries, keys, map.path);
    std::vector<double> identity(static_cast<std::size_t>(T * T), 0);
    for (std::int64_t i = 0; i < T; ++i) identity[static_cast<std::size_t>(i * (T + 1))] = 0.5;
    const Tensor layer =
        average * 0.5 + tensor(identity, {1, T, T}, {.dtype = average.dtype(), .device = average.device()});
    through = through.defined() ? matmul(layer, through) : layer;
  }
  return through;
}

}  // namespace plumb::nn
