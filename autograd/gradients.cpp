// Gradients as a value: looked up, added and multiplied.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "core/nearest.h"

namespace plumb {
namespace {

// Where to write a result that takes `value`'s place: its own buffer, if nobody else holds it.
Array place_of(const Tensor& value) { return value.array().unique() ? value.array() : empty_like(value.array()); }

}  // namespace

Gradients::Gradients(double loss, std::vector<Entry> entries) : loss_(loss), entries_(std::move(entries)) {
  for (const Entry& e : entries_) {
    if (!e.node) fail(fmt::format("[gradients] expected the variable of each gradient, got none for {}", describe(e.gradient)));
    if (!e.gradient.defined() || e.gradient.dtype() != e.node->dtype || e.gradient.device() != e.node->device ||
        !(e.gradient.shape() == e.node->shape)) [[unlikely]]
      fail(fmt::format("[gradients] expected a gradient {} {} on {} like its variable{}, got {}", name(e.node->dtype), e.node->shape,
                       name(e.node->device), e.node->name.empty() ? "" : " " + e.node->name, describe(e.gradient)));
  }
}

const std::string& Gradients::Entry::name() const { return node->name; }

double Gradients::norm() const {
  if (norm_ || entries_.empty()) return norm_.value_or(0);
  std::vector<Array> arrays;
  for (const Entry& e : entries_) arrays.push_back(e.gradient.array());
  return *(norm_ = std::sqrt(sum_of_squares(arrays)));
}

Tensor Gradients::find(const Tensor& x) const {
  const auto entry = std::ranges::find(entries_, x.node(), &Entry::node);
  return entry == entries_.end() ? Tensor() : entry->gradient;
}

const Tensor& Gradients::operator[](const std::string& parameter_name) const {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) { return e.node->name == parameter_name; });
  if (entry != entries_.end()) {
    check(std::ranges::none_of(entry + 1, entries_.end(), [&](const Entry& e) { return e.node->name == parameter_name; }),
          "[gradients] expected one parameter of the name, got several \"{}\": ask with find(variable)", parameter_name);
    return entry->gradient;
  }
  std::vector<std::string> names;
  for (const Entry& e : entries_)
    if (!e.node->name.empty()) names.push_back(e.node->name);
  const std::string nearest = nearest_name(parameter_name, names);
  fail(fmt::format("[gradients] expected the name of a parameter that the loss depends on and that is not frozen, got \"{}\"{}", parameter_name,
                   nearest.empty() ? fmt::format(" (of the {} that are here)", entries_.size()) : fmt::format("; did you mean \"{}\"?", nearest)));
}

Gradients& Gradients::operator+=(Gradients other) {
  norm_.reset();
  loss_ += other.loss_;
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
  norm_.reset();
  loss_ *= factor;
  for (Entry& e : entries_) {
    Array y = place_of(e.gradient);
    kernels(y).unary(Unary::multiply, factor, e.gradient.array(), y);
    e.gradient = Tensor(y);
  }
  return *this;
}

}  // namespace plumb
