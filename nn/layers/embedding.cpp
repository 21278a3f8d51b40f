#include "nn/layers/embedding.h"

#include "autograd/ops.h"

namespace plumb::nn {

Embedding::Embedding(const EmbeddingOptions& o) : Layer("Embedding") {
  check(o.rows > 0 && o.dim > 0, "[embedding] expected positive extents, got {} rows and dim {}", o.rows, o.dim);
  weight_ = parameter("weight", {o.rows, o.dim}, o.init, Role::embedding);
}

Tensor Embedding::forward(const Tensor& index) const { return embedding(index, weight_); }

}  // namespace plumb::nn
