// backward() and grad(): gradients of tensors. value_and_grad() and grad(f): gradients of functions. The graph is
// walked with loops, not with recursion, so only memory limits its depth.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "autograd/tensor.h"

namespace plumb {

// The gradients of a scalar with respect to every variable that it depends on. Gradients can be added and scaled. A
// gradient is looked up by its variable or by the name of its parameter.
class Gradients {
 public:
  // One variable and its gradient.
  struct Entry {
    std::shared_ptr<Node> node;  // the variable
    Tensor gradient;
    const std::string& name() const;  // the name of the parameter; empty if the variable is not a parameter
  };

  Gradients() = default;  // no gradients, as the start of a sum
  // The gradients of `loss`, which must have one element. Throws Error if an entry has no variable, or if a gradient
  // differs from its variable in shape, dtype or device.
  Gradients(const Tensor& loss, std::vector<Entry> entries);

  // The value of the differentiated scalar, and the norm of all gradients: the square root of the sum of their squares.
  // The first call of each function waits for the result.
  double loss() const;
  double norm() const;
  // loss() and norm() as arrays of one element on the gradients' device, for kernels. loss_array() and squared_norm()
  // do not wait. squared_norm() is the square of norm() in f64, and is computed by the first call. If there is no loss,
  // loss_array() throws Error. If there are no gradients, squared_norm() throws Error.
  Array loss_array() const;
  const Array& squared_norm() const;
  // All gradients, in the order in which their variables were made.
  const std::vector<Entry>& entries() const { return entries_; }

  // The gradient of a variable. If the variable has no gradient, such as a constant, a frozen parameter, or a variable
  // that the loss does not depend on, the result is undefined. Throws Error for the result of an op; use grad() for it.
  Tensor find(const Tensor& variable) const;
  // The gradient of a parameter. Throws Error if no parameter has this name; the message has the nearest name. Throws
  // Error if several parameters have this name, as with two models.
  const Tensor& operator[](const std::string& parameter_name) const;

  // Adds and scales gradients. The result is the same as if the losses had been added and scaled before the backward
  // pass; loss() is added and scaled too. Gradients are matched by variable. If only one summand has a gradient for a
  // variable, the sum has this gradient. Throws Error for a factor that is not finite. A program can compute the
  // gradients of a large batch in parts, which may have different sizes, if the loss is a mean over samples:
  //   Gradients g;
  //   std::uint32_t first = 0;
  //   for (const auto& [images, labels] : parts) {
  //     const auto size = static_cast<std::uint32_t>(images.dim(0));
  //     const RandomScope random({.seed = seed, .step = step, .first_sample = first});
  //     g += size * backward(cross_entropy(model(images), labels));
  //     first += size;
  //   }
  //   optimizer.step(g / first);
  // `first` is the index of the first sample of a part in the batch. Without .first_sample, dropout and all other drops
  // draw the same numbers in each part.
  Gradients& operator+=(Gradients other);
  Gradients& operator*=(double factor);

 private:
  void forget_values();

  struct Term {
    double factor;
    Tensor loss;
    std::uint32_t version;  // version of the loss's array
  };
  static const Tensor& unchanged(const Term& term);
  std::vector<Term> terms_;     // the loss is the sum of these terms
  std::vector<Entry> entries_;  // in the order in which the variables were made
  mutable std::optional<double> loss_ = {}, norm_ = {};
  mutable Array squared_norm_;
};

// Sums and multiples of gradients, as by += and *=.
inline Gradients operator+(Gradients a, Gradients b) { return std::move(a += std::move(b)); }
inline Gradients operator*(Gradients g, double factor) { return std::move(g *= factor); }
inline Gradients operator*(double factor, Gradients g) { return std::move(g *= factor); }
inline Gradients operator/(Gradients g, double divisor) { return std::move(g *= 1 / divisor); }

// Computes the gradients of a scalar with respect to every variable that it depends on. An lvalue keeps its graph and
// can be differentiated again. An rvalue gives its graph up: buffers saved for the backward pass are freed as soon as
// they have been used.
//   Gradients g = backward(cross_entropy(model(images), labels));
// A variable gets no gradient if it is frozen now or was frozen when the graph was recorded. Throws Error if the loss
// is undefined, has more than one element, is a constant, or has a graph that was given up before.
[[nodiscard("backward() only returns the gradients: keep the result")]] Gradients backward(const Tensor& loss);
[[nodiscard("backward() only returns the gradients: keep the result")]] Gradients backward(Tensor&& loss);

// Options of grad().
struct GradOptions {
  bool create_graph = false;  // whether to record the gradient, so that it can be differentiated
  // The gradient of a later result with respect to y, of y's shape; required unless y has one element.
  Tensor cotangent = {};
};

// The gradient of y with respect to x, or to each of xs: variables or intermediate tensors. If y does not depend on x,
// the gradient is zero. Throws Error if x requires no gradient, if y depends on no variable at all (such as the result
// of an earlier grad() without create_graph), or if the cotangent does not fit y.
[[nodiscard("grad() only returns the gradient: keep the result")]] Tensor grad(const Tensor& y, const Tensor& x,
                                                                               const GradOptions& options = {});
[[nodiscard("grad() only returns the gradients: keep the result")]] Tensors grad(const Tensor& y, const Tensors& xs,
                                                                                 const GradOptions& options = {});

namespace detail {
// f(x) and its gradients with respect to each element of x.
std::pair<Tensor, Tensors> value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& x);
// The gradients of y with respect to `targets`. The walk through the graph stops at the targets. Each target must have
// a node that no other target has. An undefined result means that y does not depend on the target.
Tensors partial_gradients(const Tensor& y, const Tensor& dy, const Tensors& targets, bool create_graph);
}  // namespace detail

// The value f(x) of a function, and its gradient with respect to every argument. f must return a floating scalar; the
// arguments must be f32 or f64. f captures the tensors that it does not differentiate, such as labels.
//   const auto [loss, g] = value_and_grad([&](const Tensor& w) { return mse_loss(matmul(x, w), y); }, weight);
// The gradient has the form of the arguments: a Tensor for one tensor, a std::array of Tensors for several tensors, and
// Tensors for a list, such as value_and_grad(f, Tensors{w, b}). The arguments need not be variables and do not change.
// The gradient is zero if f does not depend on the argument.
//
// Both results can be differentiated again if f depends on a variable outside of it, which f captures or receives as an
// argument. Such calls record the gradient, which takes more time and memory; within a NoGrad they return constants. If
// f depends on no other variable, as with tensors that come from no variable, the results are constants. Throws Error
// if f does not return a scalar, or if an argument is undefined or neither f32 nor f64.
template <class F>
[[nodiscard("value_and_grad() only returns the results: keep them")]] std::pair<Tensor, Tensors> value_and_grad(
    F&& f, const Tensors& x) {
  static_assert(std::is_invocable_r_v<Tensor, F&, const Tensors&>,
                "value_and_grad(f, x): f must take a list of tensors, const Tensors&, and return a Tensor");
  return detail::value_and_gradients(std::ref(f), x);
}
template <class F, std::same_as<Tensor>... More>
[[nodiscard("value_and_grad() only returns the results: keep them")]] auto value_and_grad(F&& f, const Tensor& x,
                                                                                          const More&... more) {
  static_assert(std::is_invocable_r_v<Tensor, F&, const Tensor&, const More&...>,
                "value_and_grad(f, x..): f must take as many tensors as there are arguments, and return a Tensor");
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto [value, g] =
        detail::value_and_gradients([&](const Tensors& in) -> Tensor { return f(in[I]...); }, {x, more...});
    if constexpr (sizeof...(I) == 1)
      return std::pair(std::move(value), std::move(g[0]));
    else
      return std::pair(std::move(value), std::array{std::move(g[I])...});
  }
  (std::make_index_sequence<1 + sizeof...(More)>());
}

// The gradient of f as a function: grad(f)(x..) is the gradient of value_and_grad(f, x..). grad(grad(f)) is the second
// derivative of a function of one number.
//   const auto slope = grad([](const Tensor& x) { return x * sin(x); });
//   slope(tensor(1.0))
template <class F>
requires(!std::convertible_to<F, Tensor> && !std::convertible_to<F, Tensors>)
    [[nodiscard("grad(f) only returns a function: call it with the arguments")]] auto grad(F f) {
  struct Held {
    mutable F f;  // such as a mutable lambda
  };
  return [held = Held{std::move(f)}](const auto&... x) { return value_and_grad(held.f, x...).second; };
}

}  // namespace plumb
