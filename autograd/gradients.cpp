// Gradients as a value: lookup, sums and multiples.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"
#include "core/nearest.h"

namespace plumb {
namespace {

// Returns the array for a result that replaces `value`: the buffer of `value` if no other tensor uses it.
Array place_of(const Tensor& value) { return value.array().unique() ? value.array() : empty_like(value.array()); }

}  // namespace

Gradients::Gradients(const Tensor& loss, std::vector<Entry> entries)
    : terms_{{1, loss.detach(), loss.array().version()}}, entries_(std::move(entries)) {
  check(loss.numel() == 1, "[gradients] expected a loss of one element, got shape {}", loss.shape());
  for (const Entry& e : entries_) {
    if (!e.node)
      fail(fmt::format("[gradients] expected the variable of each gradient, got none for {}", describe(e.gradient)));
    if (!e.gradient.defined() || e.gradient.dtype() != e.node->dtype || e.gradient.device() != e.node->device ||
        !(e.gradient.shape() == e.node->shape)) [[unlikely]]
      fail(fmt::format("[gradients] expected a gradient {} {} on {} like its variable{}, got {}",
                       enum_name(e.node->dtype), e.node->shape, enum_name(e.node->device),
                       e.node->name.empty() ? "" : " " + e.node->name, describe(e.gradient)));
  }
}

const std::string& Gradients::Entry::name() const { return node->name; }

void Gradients::forget_values() {
  loss_.reset();
  norm_.reset();
  squared_norm_ = Array();
}

const Tensor& Gradients::unchanged(const Term& term) {
  check(term.loss.array().version() == term.version,
        "[gradients] expected an unchanged loss {}, got one that was changed in place: call loss() before the change",
        describe(term.loss));
  return term.loss;
}

double Gradients::loss() const {
  if (loss_) return *loss_;
  double sum = 0;
  for (const Term& t : terms_) sum += t.factor * unchanged(t).item();
  return *(loss_ = sum);
}

double Gradients::norm() const {
  if (norm_ || entries_.empty()) return norm_.value_or(0);
  return *(norm_ = std::sqrt(item(squared_norm())));
}

Array Gradients::loss_array() const {
  check(!terms_.empty(), "[gradients] expected the gradients of a loss, got an empty sum");
  if (terms_.size() == 1 && terms_[0].factor == 1 && is_float(terms_[0].loss.dtype()))
    return unchanged(terms_[0]).array();
  const NoGrad no_grad;
  Tensor sum;
  for (const Term& t : terms_) {
    const Tensor term = cast(reshape(unchanged(t), {}), DType::f64) * t.factor;
    sum = sum.defined() ? sum + term : term;
  }
  return sum.array();
}

const Array& Gradients::squared_norm() const {
  check(!entries_.empty(), "[gradients] expected the gradient of at least one variable, got none");
  if (squared_norm_.defined()) return squared_norm_;
  std::vector<Array> arrays;
  for (const Entry& e : entries_) arrays.push_back(e.gradient.array());
  Array sum({}, DType::f64, arrays[0].device());
  kernels(sum).sum_of_squares(arrays, sum);
  return squared_norm_ = sum;
}

Tensor Gradients::find(const Tensor& x) const {
  if (x.node() && !x.node()->inputs.empty())
    fail(
        fmt::format("[gradients] expected a variable of this graph, got {}, the result of {}: for its gradient, use "
                    "grad(loss, x)",
                    describe(x), x.node()->op));
  const auto entry = std::ranges::find(entries_, x.node(), &Entry::node);
  return entry == entries_.end() ? Tensor() : entry->gradient;
}

const Tensor& Gradients::operator[](const std::string& parameter_name) const {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) { return e.node->name == parameter_name; });
  if (entry != entries_.end()) {
    check(
        std::ranges::none_of(entry + 1, entries_.end(), [&](const Entry& e) { return e.node->name == parameter_name; }),
        "[gradients] expected one parameter of this name, got several \"{}\": use find(variable)", parameter_name);
    return entry->gradient;
  }
  std::vector<std::string> names;
  for (const Entry& e : entries_)
    if (!e.node->name.empty()) names.push_back(e.node->name);
  const std::string nearest = nearest_name(parameter_name, names);
  fail(fmt::format(
      "[gradients] expected the name of a parameter that the loss depends on and that is not frozen, got \"{}\"{}",
      parameter_name,
      nearest.empty() ? fmt::format(" (there are {} gradients)", entries_.size())
                      : fmt::format("; did you mean \"{}\"?", nearest)));
}

Gradients& Gradients::operator+=(Gradients other) {
  forget_values();
  std::ranges::move(other.terms_, std::back_inserter(terms_));
  std::unordered_map<const Node*, std::size_t> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) places[entries_[i].node.get()] = i;
  for (Entry& e : other.entries_) {
    const auto place = places.find(e.node.get());
    if (place == places.end()) {
      entries_.push_back(std::move(e));
      continue;
    }
    Tensor& sum = entries_[place->second].gradient;
    Array y = place_of(sum);
    kernels(y).binary(Binary::add, sum.array(), e.gradient.array(), y);
    sum = Tensor(y);
  }
  if (entries_.size() > places.size()) std::ranges::sort(entries_, {}, [](const Entry& e) { return e.node->sequence; });
  return *this;
}

Gradients& Gradients::operator*=(double factor) {
  check(std::isfinite(factor), "[gradients] expected a finite factor, got {}", factor);
  forget_values();
  for (Term& t : terms_) t.factor *= factor;
  for (Entry& e : entries_) {
    Array y = place_of(e.gradient);
    kernels(y).unary(Unary::multiply, factor, e.gradient.array(), y);
    e.gradient = Tensor(y);
  }
  return *this;
}

}  // namespace plumb
