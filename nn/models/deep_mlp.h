// The deep fully connected network on which ReZero was first compared (Bachlechner et al. 2020, section 3, and the
// authors' notebook).
#pragma once

#include <optional>

#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

struct DeepMlpOptions {
  std::int64_t inputs = 3072, width = 256, depth = 64, classes = 10;  // depth counts hidden layers
  std::string method = "rezero";
  std::uint64_t seed = 0;  // of the initial values
};

// vanilla     f             gain sqrt 2
// residual    x + f         gain 1/2
// layer_norm  LN(f)         gain sqrt 2; one LN, its weight and bias, for all layers
// rezero      x + alpha f   gain sqrt 2; alpha [1] a layer, 0 at the start
// of a hidden layer f(x) = relu(W x + b), W drawn from Xavier's normal with this gain.
const std::vector<std::string>& deep_mlp_methods();

// x [B, ..] of `inputs` elements a sample -> logits [B, classes]: relu(linear), `depth` hidden layers, linear. As in
// the notebook, the first weight is He's normal, the last one and all biases are PyTorch's default, U(+-1 /
// sqrt(fan_in)). Parameters: first.*, hidden.N.linear.*, hidden.N.alpha, norm.*, last.*.
class DeepMlp : public Layer {
 public:
  explicit DeepMlp(const DeepMlpOptions& options);
  ~DeepMlp() override;

  Tensor first(const Tensor& x) const;   // [B, ..] -> [B, width]: what the hidden layers are given
  Tensor hidden(const Tensor& x) const;  // [B, width] -> [B, width]: through all of them

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  class Hidden;
  DeepMlpOptions options_;
  Linear first_;
  std::optional<LayerNorm> norm_;
  std::vector<std::unique_ptr<Hidden>> hidden_;
  Linear last_;
};

}  // namespace plumb::nn
