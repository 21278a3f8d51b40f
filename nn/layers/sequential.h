// Layers in a row.
#pragma once

#include <functional>

#include "nn/child.h"

namespace plumb::nn {

// A layer that calls its steps in order, each with the output of the step before it; the identity if there are none.
// A step is a layer, or a function without parameters: an op of one tensor, or a lambda for an op with options.
//   nn::Sequential model(nn::make<nn::Linear>({.in = 2, .out = 8}), relu, nn::make<nn::Linear>({.in = 8, .out = 1}));
// The names of the steps are "0", "1", .., as in PyTorch; a function counts too: 0.weight, 0.bias, 2.weight, 2.bias.
class Sequential : public Layer {
 public:
  using Function = std::function<Tensor(const Tensor&)>;  // a step without parameters

  template <class... Steps>
  explicit Sequential(Steps&&... steps) : Layer("Sequential") {
    (add(std::forward<Steps>(steps)), ...);
  }
  // Adds a step at the end. Throws Error for a null pointer and an empty function.
  void add(std::unique_ptr<Layer> layer);
  void add(Function function);

  std::size_t size() const { return steps_.size(); }
  // Returns a step as a layer; a function becomes a layer, too.
  Layer& operator[](std::size_t i) const { return *steps_.at(i); }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  std::vector<ChildPtr<Layer>> steps_;
};

}  // namespace plumb::nn
