// Cross entropy: the mean over rows of -sum_c t_c log softmax(x)_c. The gradient is (softmax(x) sum(t) - t) / rows.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

Tensor loss_of(const char* op, const Tensor& logits, const Tensor& labels, const Tensor& target, double smoothing,
               std::function<Tensor(const Tensors&)> composed) {
  Array loss = empty_like(logits.array(), Shape{}), sums = empty_like(loss, logits.shape().with(-1, 2));
  kernels(loss).cross_entropy_forward(logits.array(), labels.array(), target.array(), smoothing, loss, sums);
  return record_fused(
      op, loss, {logits},
      [x = Saved(logits), labels = Saved(labels), target = Saved(target), smoothing, sums](const Tensor& dy) {
        Array dx = empty_like(x.array());
        kernels(dx).cross_entropy_backward(dy.array(), x.array(), labels.array(), target.array(), smoothing, sums, dx);
        return Tensors{Tensor(dx)};
      },
      through(std::move(composed), {logits}));
}

}  // namespace

void detail::check_logits(const char* op, const Tensor& logits) {
  check_float(op, logits);
  check(logits.shape().rank() >= 1 && logits.numel() > 0, "[{}] expected logits [.., classes], got {}", op,
        logits.shape());
}

void detail::check_labels(const char* op, const Tensor& logits, const Tensor& labels) {
  const std::int64_t classes = logits.dim(-1);
  check_defined(op, labels);
  check(labels.dtype() == DType::i64 && labels.shape() == logits.shape().without(-1),
        "[{}] expected i64 labels {} for logits {}, got {} {}", op, logits.shape().without(-1), logits.shape(),
        enum_name(labels.dtype()), labels.shape());
  check(labels.device() == logits.device(), "[{}] expected labels on {} like the logits, got labels on {}", op,
        enum_name(logits.device()), enum_name(labels.device()));
  const Array host = numbers_to_check(labels.array());
  for (std::int64_t i = 0; i < (host.defined() ? host.numel() : 0); ++i) {
    const std::int64_t label = host.data<std::int64_t>()[i];
    check(0 <= label && label < classes, "[{}] expected labels in 0..{}, got {} at {}", op, classes - 1, label, i);
  }
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing) {
  detail::check_logits("cross_entropy", logits);
  detail::check_labels("cross_entropy", logits, labels);
  check(0 <= smoothing && smoothing <= 1, "[cross_entropy] expected label smoothing in [0, 1], got {}", smoothing);
  return loss_of("cross_entropy", logits, labels, Tensor(), smoothing, [labels, smoothing](const Tensors& in) {
    const std::int64_t C = in[0].dim(-1);
    std::vector<double> target(static_cast<std::size_t>(in[0].numel()), smoothing / static_cast<double>(C));
    const Array host = on_host(labels.array());
    for (std::int64_t i = 0; i < labels.numel(); ++i) {
      const std::int64_t label = host.data<std::int64_t>()[i];
      check(0 <= label && label < C, "[cross_entropy] expected labels in 0..{}, got {} at {}", C - 1, label, i);
      target[static_cast<std::size_t>(i * C + label)] += 1 - smoothing;
    }
    return cross_entropy_composed(in[0], tensor(target, in[0].shape(), {in[0].dtype(), in[0].device()}));
  });
}

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target) {
  detail::check_logits("soft_cross_entropy", logits);
  detail::check_operands("soft_cross_entropy", logits, target);
  check(target.shape() == logits.shape(), "[soft_cross_entropy] expected a target of shape {} like the logits, got {}",
        logits.shape(), target.shape());
  check(!target.requires_grad(),
        "[soft_cross_entropy] expected a constant target, got one that requires a gradient; detach() it");
  return loss_of("soft_cross_entropy", logits, Tensor(), target, 0,
                 [target](const Tensors& in) { return cross_entropy_composed(in[0], target); });
}

Tensor cross_entropy_composed(const Tensor& logits, const Tensor& target) {
  return sum(log_softmax_composed(logits) * target) *
         (-static_cast<double>(logits.dim(-1)) / static_cast<double>(logits.numel()));
}

}  // namespace plumb
