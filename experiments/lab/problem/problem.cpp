#include "experiments/lab/problem/problem.h"

namespace plumb::lab {
namespace {

class FunctionTask : public Task {
 public:
  explicit FunctionTask(std::function<Tensor(std::int64_t)> loss) : loss_(std::move(loss)) {}
  std::function<Tensor()> loss_of(std::int64_t step) override {
    return [loss = loss_, step] { return loss(step); };
  }

 private:
  std::function<Tensor(std::int64_t)> loss_;
};

}  // namespace

std::unique_ptr<Task> task_of(std::function<Tensor(std::int64_t)> loss) {
  check(loss != nullptr, "[task_of] expected a function that computes the loss of a step, got an empty one");
  return std::make_unique<FunctionTask>(std::move(loss));
}

nn::ModelCard model_card(const nn::Module& model) {
  std::optional<nn::ModelCard> card = nn::card_of(model);
  check(card.has_value(), "a card can describe a ViT or a CaiT, and this model is neither");
  return *std::move(card);
}

std::map<std::string, std::string> Problem::weights_metadata(const nn::Module& model) const {
  return nn::metadata_of(model_card(model));
}

}  // namespace plumb::lab
