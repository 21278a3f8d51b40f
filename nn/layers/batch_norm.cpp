#include "nn/layers/batch_norm.h"

#include <mutex>
#include <string_view>
#include <thread>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb::nn {
namespace {

constexpr double momentum = 0.1;

void move_towards(const Tensor& running, const Tensor& batch) {
  copy_into((running.detach() * (1 - momentum) + batch.detach() * momentum).array(), running.array());
}

// Checks the arguments before any parameter is made.
double checked_eps(std::int64_t channels, double eps) {
  check(channels > 0, "[batch_norm2d] expected at least one channel, got {}", channels);
  detail::check_eps("batch_norm2d", eps);
  return eps;
}

}  // namespace

struct BatchNorm2d::TrainingPass {
  std::mutex mutex;
  std::thread::id thread;
  std::weak_ptr<Node> graph;
};

BatchNorm2d::BatchNorm2d(std::int64_t channels, double eps)
    : Layer("BatchNorm2d"),
      eps_(checked_eps(channels, eps)),
      weight_(parameter("weight", {channels}, Init::constant(1), Role::norm)),
      bias_(parameter("bias", {channels}, Init::constant(0), Role::norm)),
      running_mean_(parameter("running_mean", {channels}, Init::constant(0), Role::statistic)),
      running_var_(parameter("running_var", {channels}, Init::constant(1), Role::statistic)),
      last_pass_(std::make_shared<TrainingPass>()) {}

Tensor BatchNorm2d::forward(const Tensor& images) const {
  if (!training()) return batch_norm2d(images, {running_mean_.detach(), running_var_.detach()}, weight_, bias_, eps_);
  const std::lock_guard lock(last_pass_->mutex);
  check(last_pass_->thread == std::this_thread::get_id() || last_pass_->graph.expired(),
        "[batch_norm2d] expected one thread at a time to train a model with batch norm, got a second thread while the "
        "graph of the first thread's pass exists: the running statistics would depend on the order of the threads");
  const BatchStatistics batch = batch_statistics(images);
  const std::int64_t count = images.numel() / images.dim(1);
  check(count > 1, "[batch_norm2d] expected more than one value per channel in training, got images {}",
        images.shape());
  if (std::string_view(current_phase()) == "forward") {
    move_towards(running_mean_, batch.mean);
    move_towards(running_var_, batch.variance.detach() * (static_cast<double>(count) / static_cast<double>(count - 1)));
  }
  const Tensor y = batch_norm2d(images, batch, weight_, bias_, eps_);
  last_pass_->thread = std::this_thread::get_id();
  last_pass_->graph = y.node();
  return y;
}

}  // namespace plumb::nn
