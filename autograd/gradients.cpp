// Gradients as a value: looked up, added and multiplied.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/backward.h"
#include "autograd/node.h"

namespace plumb {
namespace {

// Where to write a result that takes `value`'s place: its own buffer, if nobody else holds it.
Array place_of(const Tensor& value) { return value.array().unique() ? value.array() : empty_like(value.array()); }

}  // namespace

const std::string& Gradients::Entry::name() const { return node->name; }

double Gradients::norm() const {
  if (entries_.empty()) return 0;
  std::vector<Array> arrays;
  for (const Entry& e : entries_) arrays.push_back(e.gradient.array());
  return std::sqrt(kernels(arrays[0]).sum_of_squares(arrays));
}

Tensor Gradients::find(const Tensor& x) const {
  const auto entry = std::ranges::find(entries_, x.node(), &Entry::node);
  return entry == entries_.end() ? Tensor() : entry->gradient;
}

const Tensor& Gradients::operator[](const std::string& parameter_name) const {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) { return e.node->name == parameter_name; });
  check(entry != entries_.end(), "[gradients] expected the name of a parameter that the loss depends on, got \"{}\" ({} gradients are here)",
        parameter_name, entries_.size());
  return entry->gradient;
}

Gradients& Gradients::operator+=(Gradients other) {
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
    const Array y = place_of(sum);
    kernels(y).binary(Binary::add, sum.array(), e.gradient.array(), y);
    sum = Tensor(y);
  }
  if (entries_.size() > places.size()) std::ranges::sort(entries_, {}, [](const Entry& e) { return e.node->sequence; });
  return *this;
}

Gradients& Gradients::operator*=(double factor) {
  check(std::isfinite(factor), "[gradients] expected a finite factor, got {}", factor);
  loss_ *= factor;
  for (Entry& e : entries_) {
    const Array y = place_of(e.gradient);
    kernels(y).unary(Unary::multiply, factor, e.gradient.array(), y);
    e.gradient = Tensor(y);
  }
  return *this;
}

}  // namespace plumb
