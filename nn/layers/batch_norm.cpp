#include "nn/layers/batch_norm.h"

#include <mutex>

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

constexpr double momentum = 0.1;

void move_towards(const Tensor& running, const Tensor& batch) {
  copy_into((running.detach() * (1 - momentum) + batch.detach() * momentum).array(), running.array());
}

// A token of this thread, which lives as long as the thread.
std::shared_ptr<const int> this_thread() {
  static thread_local const auto token = std::make_shared<const int>(0);
  return token;
}

// Checks the arguments before any parameter is made.
double checked_eps(std::int64_t channels, double eps) {
  check(channels > 0, "[batch_norm2d] expected at least one channel, got {}", channels);
  detail::check_eps("batch_norm2d", eps);
  return eps;
}

}  // namespace

struct BatchNorm2d::Trainer {
  std::mutex mutex;
  std::weak_ptr<const int> thread;
};

BatchNorm2d::BatchNorm2d(std::int64_t channels, double eps)
    : Layer("BatchNorm2d"),
      eps_(checked_eps(channels, eps)),
      weight_(parameter("weight", {channels}, Init::constant(1), Role::norm)),
      bias_(parameter("bias", {channels}, Init::constant(0), Role::norm)),
      running_mean_(parameter("running_mean", {channels}, Init::constant(0), Role::statistic)),
      running_var_(parameter("running_var", {channels}, Init::constant(1), Role::statistic)),
      trainer_(std::make_shared<Trainer>()) {}

Tensor BatchNorm2d::forward(const Tensor& images) const {
  if (!training()) return batch_norm2d(images, running_mean_.detach(), running_var_.detach(), weight_, bias_, eps_);
  const std::lock_guard lock(trainer_->mutex);
  const std::shared_ptr<const int> trainer = trainer_->thread.lock();
  check(!trainer || trainer == this_thread(),
        "[batch_norm2d] expected one thread to train a model with batch norm, got a second thread while the first "
        "thread still runs: the running statistics would depend on the order of the threads. Give each thread its own "
        "model, or call eval() for passes that do not train");
  trainer_->thread = this_thread();
  const auto [mean, variance] = batch_statistics(images);
  const std::int64_t count = images.numel() / images.dim(1);
  check(count > 1, "[batch_norm2d] expected more than one value per channel in training, got images {}",
        images.shape());
  if (current_repeat() == Repeat::none) {
    move_towards(running_mean_, mean);
    move_towards(running_var_, variance.detach() * (static_cast<double>(count) / static_cast<double>(count - 1)));
  }
  return batch_norm2d(images, mean, variance, weight_, bias_, eps_);
}

}  // namespace plumb::nn
