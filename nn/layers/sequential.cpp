#include "nn/layers/sequential.h"

namespace plumb::nn {
namespace {

class FunctionLayer : public Layer {
 public:
  explicit FunctionLayer(Sequential::Function function) : Layer("Function"), function_(std::move(function)) {}

 protected:
  Tensor forward(const Tensor& x) const override { return function_(x); }

 private:
  Sequential::Function function_;
};

}  // namespace

void Sequential::add(std::unique_ptr<Layer> layer) {
  check(layer != nullptr, "[sequential] expected a layer, got null");
  steps_.emplace_back(this, std::to_string(size()), std::move(layer));
}

void Sequential::add(Function function) {
  check(static_cast<bool>(function), "[sequential] expected a function to call, got an empty one");
  add(std::make_unique<FunctionLayer>(std::move(function)));
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor h = x;
  for (const ChildPtr<Layer>& step : steps_) h = (*step)(h);
  return h;
}

}  // namespace plumb::nn
