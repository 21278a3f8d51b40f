// A table of vectors, one for each index, such as the characters of a text.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Options of an Embedding.
struct EmbeddingOptions {
  std::int64_t rows, dim;       // number of indices, and width of a vector
  Init init = Init::normal(1);  // as in PyTorch; another deviation is Init::normal(0.02)
};

// Maps indices [..], i64 in 0 .. rows - 1, to vectors [.., dim]. The gradient of a row is the sum over the positions
// with its index. Parameter: weight [rows, dim], of Role::embedding, so weight decay does not apply. The errors for
// indices out of range are those of embedding() (autograd/ops/movement.h). The constructor throws Error for extents
// below 1.
class Embedding : public Layer {
 public:
  using Options = EmbeddingOptions;  // the options of the constructor, for nn::Child
  explicit Embedding(const EmbeddingOptions& options);

  const Tensor& weight() const { return weight_; }

 protected:
  Tensor forward(const Tensor& index) const override;

 private:
  Tensor weight_;
};

}  // namespace plumb::nn
