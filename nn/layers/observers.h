// A list of functions that observe the passes of a layer or a junction.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "autograd/tensor.h"

namespace plumb::nn {

// Observers that are called with a Pass. The list may change only while no thread computes.
template <class Pass>
class Observers {
 public:
  using Observer = std::function<void(const Pass&)>;  // the type of an observer

  // Adds an observer, which is removed when the handle is destroyed. Throws Error for an empty function.
  Handle add(Observer observer) const {
    check(static_cast<bool>(observer), "[observe] expected a function to call, got an empty one");
    const int id = all_->empty() ? 0 : all_->rbegin()->first + 1;
    (*all_)[id] = std::move(observer);
    return Handle([weak = std::weak_ptr(all_), id] {
      if (const auto alive = weak.lock()) alive->erase(id);
    });
  }
  bool empty() const { return all_->empty(); }  // whether there is no observer
  // Calls each observer. An observer may remove itself, so the loop uses a copy of the map.
  void call(const Pass& pass) const {
    for (const auto& [id, observer] : std::map(*all_)) observer(pass);
  }

 private:
  std::shared_ptr<std::map<int, Observer>> all_ = std::make_shared<std::map<int, Observer>>();
};

}  // namespace plumb::nn
