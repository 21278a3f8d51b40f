// Gradients. The graph is walked with loops, so its depth is bounded by memory alone.
#pragma once

#include <optional>

#include "autograd/tensor.h"

namespace plumb {

// Gradients of a scalar with respect to every variable that it depends on: a value, looked up by variable or by
// parameter name.
class Gradients {
 public:
  struct Entry {
    std::shared_ptr<Node> node;  // of the variable
    Tensor gradient;
    const std::string& name() const;  // of the parameter; empty for a variable that is none
  };

  Gradients() = default;  // of nothing: what a sum begins with
  // `loss` has one element. Throws for an entry without a variable, or whose gradient has not the shape, dtype and
  // device of its variable.
  Gradients(const Tensor& loss, std::vector<Entry> entries);

  double loss() const;  // value of the scalar that was differentiated; waits for it when it is first asked for
  double norm() const;  // sqrt of the sum of squares of all entries; waits for it likewise
  // The same where the gradients are, without waiting, for kernels: one element. squared_norm is f64, computed when it
  // is first asked for. Throw for gradients of nothing.
  Array loss_array() const;
  const Array& squared_norm() const;
  const std::vector<Entry>& entries() const { return entries_; }

  // Undefined if there is none.
  Tensor find(const Tensor& variable) const;
  // Throws if there is none, naming the parameter that may have been meant, or several of the name (two models).
  const Tensor& operator[](const std::string& parameter_name) const;

  // Sums and multiples, as if the losses had been added and multiplied before the pass, loss() included: a large batch
  // in small parts.
  //   Gradients g;
  //   for (const auto& [images, labels] : parts) g += backward(cross_entropy(model(images), labels));
  //   optimizer.step(g / parts.size());
  // Gradients are matched by variable; one that only one of the two has is in the sum as it is. A factor must be
  // finite.
  Gradients& operator+=(Gradients other);
  Gradients& operator*=(double factor);

 private:
  void forget_values();

  struct Term {
    double factor;
    Tensor loss;
    std::uint32_t version;  // of its array
  };
  static const Tensor& unchanged(const Term& term);
  std::vector<Term> terms_;     // whose sum is the loss
  std::vector<Entry> entries_;  // in the order in which the variables were made
  mutable std::optional<double> loss_ = {}, norm_ = {};
  mutable Array squared_norm_;
};

inline Gradients operator+(Gradients a, Gradients b) { return std::move(a += std::move(b)); }
inline Gradients operator*(Gradients g, double factor) { return std::move(g *= factor); }
inline Gradients operator*(double factor, Gradients g) { return std::move(g *= factor); }
inline Gradients operator/(Gradients g, double divisor) { return std::move(g *= 1 / divisor); }

// Differentiates a scalar. An lvalue keeps its graph and may be differentiated again; an rvalue gives it up, and
// buffers saved for the backward pass are freed as soon as they have been used:
//   Gradients g = backward(cross_entropy(model(images), labels));
// Variables that are frozen get none, whether that was so when the graph was recorded or is so now. Throws for a loss
// that is not a scalar, is a constant, or was given up before.
[[nodiscard("backward() returns the gradients and keeps them nowhere else")]] Gradients backward(const Tensor& loss);
[[nodiscard("backward() returns the gradients and keeps them nowhere else")]] Gradients backward(Tensor&& loss);

struct GradOptions {
  bool create_graph = false;  // record the gradient itself, so that it can be differentiated
  Tensor cotangent = {};      // gradient fed into y; needed unless y has one element
};

// dy/dx for a variable or an intermediate; zero where y depends on other variables, but not on x. Throws for a y that
// depends on none, such as what an earlier grad() returned without create_graph.
[[nodiscard("grad() returns the gradient and keeps it nowhere else")]] Tensor grad(const Tensor& y, const Tensor& x,
                                                                                   const GradOptions& options = {});
[[nodiscard("grad() returns the gradients and keeps them nowhere else")]] Tensors grad(const Tensor& y,
                                                                                       const Tensors& xs,
                                                                                       const GradOptions& options = {});

namespace detail {
// The gradients of y towards `targets`, not looking behind them; each target has a node of its own.
Tensors partial_gradients(const Tensor& y, const Tensor& dy, const Tensors& targets, bool create_graph);
}  // namespace detail

}  // namespace plumb
