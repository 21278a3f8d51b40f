// The deep fully connected network with which the ReZero paper first compares methods (Bachlechner et al. 2020, section
// 3, and the authors' notebook).
#pragma once

#include "nn/blocks/stack.h"

namespace plumb::nn {

// Options of a DeepMlp.
struct DeepMlpOptions {
  std::int64_t inputs = 3072, width = 256, depth = 64, classes = 10;  // `depth` is the number of hidden layers
  std::string method = "rezero";
  std::uint64_t seed = 0;  // seed of the initial values
};

// Returns the names of the methods. In a hidden layer, f(x) = relu(W x + b), and the init of W is Xavier's normal
// distribution with the gain below. The output of the hidden layer for each method:
//   vanilla     f             gain sqrt 2
//   residual    x + f         gain 1/2
//   layer_norm  LN(f)         gain sqrt 2; all layers share one LN (weight and bias)
//   rezero      x + alpha f   gain sqrt 2; each layer has an alpha [1] with initial value 0
const std::vector<std::string>& deep_mlp_methods();

// Maps x [B, ..], with `inputs` elements per sample, to logits [B, classes]: relu(linear), then `depth` hidden layers,
// then linear. A hidden layer is a block of a Stack, and f is its branch. As in the notebook, the init of the first
// weight is He's normal distribution; the init of the last weight and of all biases is PyTorch's default,
// U(+-1 / sqrt(fan_in)). Parameters: first.*, hidden.N.linear.*, hidden.N.gate.alpha, norm.*, last.*. Throws Error for
// an unknown method, and for sizes below 1.
class DeepMlp : public Layer {
 public:
  using Options = DeepMlpOptions;  // the options of the constructor, for nn::Child
  explicit DeepMlp(const DeepMlpOptions& options);

  // Returns the input of the hidden layers [B, width] for x [B, ..].
  Tensor first(const Tensor& x) const;
  // Returns the output of all hidden layers [B, width] for their input x [B, width].
  Tensor hidden(const Tensor& x) const { return stack_(x); }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  // The two layers are made before the others: the norm of a gradient is a sum in the order of construction.
  DeepMlp(const DeepMlpOptions& options, std::unique_ptr<Linear> first, std::unique_ptr<Linear> last);

  DeepMlpOptions options_;
  ChildPtr<Linear> first_;
  ChildPtr<Layer> norm_;  // the norm that all hidden layers share; null unless the method is layer_norm
  Child<Stack> stack_;
  ChildPtr<Linear> last_;
};

}  // namespace plumb::nn
