// The deep fully connected network with which the ReZero paper first compares methods (Bachlechner et al. 2020, section
// 3, and the authors' notebook).
#pragma once

#include <optional>

#include "nn/layers/linear.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Options of a DeepMlp.
struct DeepMlpOptions {
  std::int64_t inputs = 3072, width = 256, depth = 64, classes = 10;  // depth counts the hidden layers
  std::string method = "rezero";
  std::uint64_t seed = 0;  // of the initial values
};

// The names of the methods. A hidden layer computes f(x) = relu(W x + b), where W starts from Xavier's normal
// distribution with the gain below. Its output is
//   vanilla     f             gain sqrt 2
//   residual    x + f         gain 1/2
//   layer_norm  LN(f)         gain sqrt 2; all layers share one LN with its weight and bias
//   rezero      x + alpha f   gain sqrt 2; each layer has an alpha [1], which starts at 0
const std::vector<std::string>& deep_mlp_methods();

// Maps x [B, ..], with `inputs` elements per sample, to logits [B, classes]: relu(linear), then `depth` hidden layers,
// then linear. As in the notebook, the first weight starts from He's normal distribution; the last weight and all
// biases have PyTorch's default, U(+-1 / sqrt(fan_in)). Parameters: first.*, hidden.N.linear.*, hidden.N.alpha, norm.*,
// last.*. Throws Error for an unknown method, and for sizes below 1.
class DeepMlp : public Layer {
 public:
  explicit DeepMlp(const DeepMlpOptions& options);
  ~DeepMlp() override;

  // The input of the hidden layers: [B, ..] -> [B, width].
  Tensor first(const Tensor& x) const;
  // The output of all hidden layers: [B, width] -> [B, width].
  Tensor hidden(const Tensor& x) const;

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
