// Member modules that register themselves in their parent: Child, ChildPtr and Children.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace plumb::nn {

// Makes a module of type M from the arguments of its constructor.
template <class M, class... Arguments>
requires std::constructible_from<M, Arguments...> std::unique_ptr<M> make(Arguments&&... arguments) {
  return std::make_unique<M>(std::forward<Arguments>(arguments)...);
}
// The same if the arguments begin with options in braces, nn::make<nn::Linear>({.in = 2, .out = 3}). M must name the
// type of its options M::Options.
template <class M, class Options = typename M::Options, class... Arguments>
std::unique_ptr<M> make(const std::type_identity_t<Options>& options, Arguments&&... arguments) {
  return std::make_unique<M>(options, std::forward<Arguments>(arguments)...);
}

// A member module of type M, which is an M and registers itself in its parent under a name:
//   nn::Child<nn::Linear> head{this, "head", {.in = 16, .out = 10}};
// The arguments after the name are those of M's constructor, as in make(). The children of a module are in the order of
// its members. If the name is "", the parameters and children of M appear as those of the parent. Throws Error for a
// name that is taken or has dots.
template <class M>
class Child : public M {
 public:
  template <class... Arguments>
  Child(Module* parent, const std::string& name, Arguments&&... arguments) : M(std::forward<Arguments>(arguments)...) {
    parent->adopt(name, *this);
  }
  template <class N = M, class Options = typename N::Options, class... Arguments>
  Child(Module* parent, const std::string& name, const std::type_identity_t<Options>& options, Arguments&&... arguments)
      : M(options, std::forward<Arguments>(arguments)...) {
    parent->adopt(name, *this);
  }
};

// A member module behind a pointer, which owns it: a module of a derived class, or one that only some configurations
// have. A ChildPtr that was not given a module is null, and registers nothing.
//   nn::ChildPtr<nn::Dropout> drop;                                    // a member
//   if (rate > 0) drop = {this, "drop", nn::make<nn::Dropout>(rate)};  // in the constructor
template <class M>
class ChildPtr {
 public:
  ChildPtr() = default;
  // Registers the module, unless the pointer is null, with the errors of Child.
  ChildPtr(Module* parent, const std::string& name, std::unique_ptr<M> module) : module_(std::move(module)) {
    if (module_) parent->adopt(name, *module_);
  }
  M& operator*() const { return *module_; }
  M* operator->() const { return module_.get(); }
  M* get() const { return module_.get(); }
  explicit operator bool() const { return module_ != nullptr; }

 private:
  std::unique_ptr<M> module_;
};

// A list of member modules, with the names "0", "1", .. below the name of the list: the weights of
// nn::Children<nn::Linear> layers{this, "layers"} are layers.0.weight, layers.1.weight, .. Elements are of type M, or
// derived from M. The list gives access to its elements as a list of pointers does: also a const list gives M&.
template <class M>
class Children : public Module {
 public:
  // Throws Error for a name that is empty, taken, or has dots.
  Children(Module* parent, const std::string& name) : Module("Children") {
    check(!name.empty(), "[module] expected a name for a list of children of {}, got \"\"", *parent->path());
    parent->adopt(name, *this);
  }

  // Adds a module at the end, and returns it. The arguments are the module, or those of M's constructor, as in make().
  // Throws Error for a null pointer.
  template <std::derived_from<M> D>
  D& add(std::unique_ptr<D> module) {
    check(module != nullptr, "[module] expected a module to add to {}, got null", *path());
    D& added = *module;
    modules_.reserve(modules_.size() + 1);
    adopt(std::to_string(modules_.size()), added);
    modules_.push_back(std::move(module));
    return added;
  }
  template <class... Arguments>
  requires std::constructible_from<M, Arguments...> M& add(Arguments&&... arguments) {
    return add(make<M>(std::forward<Arguments>(arguments)...));
  }
  template <class N = M, class Options = typename N::Options, class... Arguments>
  M& add(const std::type_identity_t<Options>& options, Arguments&&... arguments) {
    return add(std::make_unique<M>(options, std::forward<Arguments>(arguments)...));
  }

  std::size_t size() const { return modules_.size(); }
  bool empty() const { return modules_.empty(); }
  M& operator[](std::size_t i) const { return *modules_.at(i); }
  M& front() const { return *modules_.front(); }
  M& back() const { return *modules_.back(); }
  // Iterates over the elements: for (M& module : list).
  auto begin() const { return Iterator{modules_.begin()}; }
  auto end() const { return Iterator{modules_.end()}; }

 private:
  struct Iterator {
    typename std::vector<std::unique_ptr<M>>::const_iterator at = {};
    using difference_type = std::ptrdiff_t;
    using value_type = M;
    M& operator*() const { return **at; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    Iterator operator++(int) { return {at++}; }
    bool operator==(const Iterator&) const = default;
  };
  std::vector<std::unique_ptr<M>> modules_;
};

}  // namespace plumb::nn
