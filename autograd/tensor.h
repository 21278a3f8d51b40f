// Tensor: an Array with its place in the graph; the type users see. A handle: copies share data and node.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/array.h"

namespace plumb {

struct Node;
class Tensor;
using Tensors = std::vector<Tensor>;

// Removes what it stands for (a hook) when destroyed.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  explicit Handle(std::function<void()> remove) : remove_(std::move(remove)) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : remove_(std::exchange(other.remove_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    reset();
    remove_ = std::exchange(other.remove_, nullptr);
    return *this;
  }
  void reset() {
    if (auto remove = std::exchange(remove_, nullptr)) remove();
  }

 private:
  std::function<void()> remove_;
};

class Tensor {
 public:
  Tensor() = default;  // no tensor: defined() is false
  explicit Tensor(Array array, std::shared_ptr<Node> node = nullptr) : array_(std::move(array)), node_(std::move(node)) {}

  bool defined() const { return array_.defined(); }
  const Array& array() const { return array_; }
  const Shape& shape() const { return array_.shape(); }
  std::int64_t dim(int i) const { return array_.dim(i); }
  std::int64_t numel() const { return array_.numel(); }
  DType dtype() const { return array_.dtype(); }
  Device device() const { return array_.device(); }

  // Whether gradients flow to it: a variable that is not frozen, or computed from one while the graph was recorded.
  bool requires_grad() const;
  const std::shared_ptr<Node>& node() const { return node_; }
  Tensor detach() const { return Tensor(array_); }

  double item() const { return plumb::item(array_); }               // the one element
  std::vector<double> values() const { return to_vector(array_); }  // all elements, row-major; throws for an undefined tensor

  // Calls `hook` with the complete gradient of this tensor in each backward pass; what it returns, unless undefined, takes the
  // gradient's place and must have its shape, dtype and device. The hook is gone with the handle. Throws for a tensor that requires no gradient.
  [[nodiscard("the hook is gone with its handle: keep it")]] Handle on_gradient(std::function<Tensor(const Tensor& gradient)> hook) const;

 private:
  Array array_;
  std::shared_ptr<Node> node_;
};

// What fmt shows of a tensor: dtype, shape, device if it is not the cpu, and values with four digits. Beyond 200 elements an axis of more than six
// shows its first and last three.
//   fmt::print("{}\n", t);
//   f32 [2, 3]
//   [[1, 0.5, -2],
//    [4,   5,  6]]
std::string to_string(const Tensor& t);
// "f32 [2, 3]", with its device if that is not the cpu; "an undefined tensor". For messages.
std::string describe(const Tensor& x);

// A leaf that gradients are collected for. The tensor shares the array's buffer: updating it in place moves the variable.
Tensor variable(const Array& value);
inline Tensor variable(const Tensor& value) { return variable(value.array()); }

// Constants, in the thread's default dtype on its default device unless said (core/array.h).
Tensor full(const Shape& shape, double value, Defaults where = defaults());
inline Tensor zeros(const Shape& shape, Defaults where = defaults()) { return full(shape, 0, where); }
inline Tensor ones(const Shape& shape, Defaults where = defaults()) { return full(shape, 1, where); }
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor tensor(const std::vector<double>& values, const Shape& shape, Defaults where = defaults());
Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape, Device device = defaults().device);
// Standard normal draws: a function of (seed, name) and the element only.
Tensor random_normal(const Shape& shape, std::uint64_t seed, std::string_view name, Defaults where = defaults());

// While one is alive on this thread, nothing is recorded.
class [[nodiscard("nothing is recorded while it lives: give it a name")]] NoGrad {
 public:
  NoGrad();

 private:
  ScopedValue<bool> value_;
};
// The opposite, inside a NoGrad.
class [[nodiscard("recording is on while it lives: give it a name")]] EnableGrad {
 public:
  EnableGrad();

 private:
  ScopedValue<bool> value_;
};
bool grad_enabled();

}  // namespace plumb

template <>
struct fmt::formatter<plumb::Tensor> : fmt::formatter<std::string_view> {
  auto format(const plumb::Tensor& t, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(plumb::to_string(t), context);
  }
};
