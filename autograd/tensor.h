// Tensor: an Array with its place in the graph, and the functions that make constants.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "core/array.h"

namespace plumb {

struct Node;
class Tensor;
// A list of tensors: the inputs of an op, or the parameters of a model.
using Tensors = std::vector<Tensor>;

// Represents a registration, such as that of a hook. Destroying the handle or calling reset() removes the registration.
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
  // Removes the registration now. Further calls have no effect.
  void reset() {
    if (auto remove = std::exchange(remove_, nullptr)) remove();
  }

 private:
  std::function<void()> remove_;
};

// The type that users compute with: an array and its node in the graph. A handle: copies share the data and the node.
class Tensor {
 public:
  Tensor() = default;  // no tensor: defined() returns false
  explicit Tensor(Array array, std::shared_ptr<Node> node = nullptr)
      : array_(std::move(array)), node_(std::move(node)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Only a named tensor can be assigned to: x[0] = y would change nothing but a temporary handle, and does not compile.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  ~Tensor() = default;

  // Whether the tensor has an array.
  bool defined() const { return array_.defined(); }
  // The array and its properties, as in core/array.h.
  const Array& array() const { return array_; }
  const Shape& shape() const { return array_.shape(); }
  std::int64_t dim(int i) const { return array_.dim(i); }
  std::int64_t numel() const { return array_.numel(); }
  DType dtype() const { return array_.dtype(); }
  Device device() const { return array_.device(); }

  // Whether gradients flow to this tensor: the tensor is a variable that is not frozen, or was computed from such a
  // variable while the graph was recorded.
  bool requires_grad() const;
  // The node of this tensor in the graph; null for a constant.
  const std::shared_ptr<Node>& node() const { return node_; }
  // A constant with the same data: shares the buffer and has no node.
  Tensor detach() const { return Tensor(array_); }
  // x[i, ..], without the first axis. A negative i counts from the end. Gradients flow through the op. Throws Error if
  // i is out of range.
  Tensor operator[](std::int64_t i) const;

  // The only element, as a double. Waits for the element. Throws Error if the tensor is undefined or does not have
  // exactly one element.
  double item() const { return plumb::item(array_); }
  // All elements, row-major, as doubles. Waits for the elements. Throws Error if the tensor is undefined.
  std::vector<double> values() const { return to_vector(array_); }

  // Calls `hook` in each backward pass with the complete gradient of this tensor. If the hook returns a defined tensor,
  // this tensor replaces the gradient and must have the gradient's shape, dtype and device. The hook is removed when
  // the handle is destroyed. Throws Error if the tensor requires no gradient or the hook is empty.
  [[nodiscard("destroying the handle removes the hook: keep the handle")]] Handle on_gradient(
      std::function<Tensor(const Tensor& gradient)> hook) const;

 private:
  Array array_;
  std::shared_ptr<Node> node_;
};

// The text that fmt prints for a tensor: dtype, shape, device unless it is cpu, and values with four digits. If there
// are more than 200 elements, an axis of more than six elements shows only its first three and last three elements.
//   fmt::print("{}\n", t);
//   f32 [2, 3]
//   [[1, 0.5, -2],
//    [4,   5,  6]]
std::string to_string(const Tensor& t);
// A description for messages: "f32 [2, 3]", with the device unless it is cpu; "an undefined tensor".
std::string describe(const Tensor& x);

// Makes a leaf of the graph, for which backward() computes a gradient. The tensor shares the buffer of `value`, so
// updating that array in place changes the variable. Throws Error unless `value` is f32 or f64.
Tensor variable(const Array& value);
inline Tensor variable(const Tensor& value) { return variable(value.array()); }

// ---- constants (makers.cpp)
// Without an argument for dtype and device, the functions use those of defaults() (core/array.h).

// A tensor of this shape whose elements are all `value` (full), 0 (zeros) or 1 (ones).
Tensor full(const Shape& shape, double value, Defaults where = defaults());
inline Tensor zeros(const Shape& shape, Defaults where = defaults()) { return full(shape, 0, where); }
inline Tensor ones(const Shape& shape, Defaults where = defaults()) { return full(shape, 1, where); }
// A tensor with the shape, dtype and device of `x` whose elements are all `value` (full_like), 0 (zeros_like) or 1
// (ones_like). Throws Error if x is undefined.
Tensor full_like(const Tensor& x, double value);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
// A tensor with these values in row-major order; integers() makes an i64 tensor, such as labels and indices. Throws
// Error if the number of values does not fit the shape.
Tensor tensor(const std::vector<double>& values, const Shape& shape, Defaults where = defaults());
Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape, Device device = defaults().device);

// An arithmetic type N that can stand for a T in a list: any number for a floating T, only integers for an integral T.
template <class N, class T>
concept NumberOf = std::is_arithmetic_v<N> &&(std::is_integral_v<N> || std::is_floating_point_v<T>);
// A number, or a list of NestedLists: {{1, 2}, {3, 4}}.
template <class T>
class NestedList {
 public:
  template <NumberOf<T> N>
  NestedList(N number) : number_(static_cast<T>(number)), is_list_(false) {}  // NOLINT(google-explicit-constructor)
  NestedList(std::initializer_list<NestedList> items) : items_(items) {}      // NOLINT(google-explicit-constructor)
  // The items of a list (null if the NestedList is a number), and the number.
  const std::vector<NestedList>* items() const { return is_list_ ? &items_ : nullptr; }
  T number() const { return number_; }

 private:
  std::vector<NestedList> items_ = {};
  T number_ = 0;
  bool is_list_ = true;
};
// A tensor from nested lists: tensor({{1, 2}, {3, 4}}) has shape [2, 2], and tensor(5.0) is a scalar. Throws Error if
// lists at the same depth differ in length; the message names the position.
Tensor tensor(const NestedList<double>& values);
Tensor integers(const NestedList<std::int64_t>& values);
// A tensor from nested lists with the given dtype and device. (The functions are templates, so that the second argument
// of tensor({2}, {}) is a shape.)
template <std::same_as<Defaults> D>
Tensor tensor(const NestedList<double>& values, D where) {
  const DefaultsScope scope(where);
  return tensor(values);
}
template <std::same_as<Device> D>
Tensor integers(const NestedList<std::int64_t>& values, D device) {
  const DefaultsScope scope({.device = device});
  return integers(values);
}

// The floating sequence begin, begin + step, .., up to but not including `end`. Throws Error unless the step
// leads from begin towards end.
Tensor arange(double begin, double end, double step = 1, Defaults where = defaults());
// The sequence 0, 1, 2, .. up to but not including `end`, floating.
Tensor arange(double end, Defaults where = defaults());
namespace detail {
Tensor arange_integers(std::int64_t begin, std::int64_t end, std::int64_t step, Device device);
}
// The i64 sequence for integer arguments: from 0 or begin, in steps of 1 or step, up to but not including `end`.
// Throws Error unless the step leads from begin towards end.
Tensor arange(std::integral auto end, Device device = defaults().device) {
  return detail::arange_integers(0, end, 1, device);
}
Tensor arange(std::integral auto begin, std::integral auto end, Device device = defaults().device) {
  return detail::arange_integers(begin, end, 1, device);
}
Tensor arange(std::integral auto begin, std::integral auto end, std::integral auto step,
              Device device = defaults().device) {
  return detail::arange_integers(begin, end, step, device);
}
// `count` numbers at equal distances from first to last, including both ends. If count is 1, the number is `first`.
// Throws Error for a negative count.
Tensor linspace(double first, double last, std::int64_t count, Defaults where = defaults());
// The matrix [rows, columns] (or [rows, rows]) with 1 on the diagonal and 0 elsewhere.
Tensor eye(std::int64_t rows, std::int64_t columns, Defaults where = defaults());
inline Tensor eye(std::int64_t rows, Defaults where = defaults()) { return eye(rows, rows, where); }
// index i64 [..] with values in 0 .. classes - 1 -> [.., classes] on the device of index: 1 at the index, else 0. Waits
// for index. Throws Error for an index out of range.
Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype = defaults().dtype);

// Standard normal numbers, drawn from (seed, name, element) only: equal calls give equal results. random_normal_like()
// takes shape, dtype and device of `x`.
Tensor random_normal(const Shape& shape, std::uint64_t seed, std::string_view name, Defaults where = defaults());
Tensor random_normal_like(const Tensor& x, std::uint64_t seed, std::string_view name);
// Uniform numbers in [low, high), drawn from (seed, name, element) only. Rounding to the dtype may give `high` itself.
// Throws Error unless the bounds are finite and low <= high.
Tensor random_uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::string_view name,
                      Defaults where = defaults());
// A random permutation of 0 .. n - 1, i64 [n], drawn from (seed, name) only.
Tensor random_permutation(std::int64_t n, std::uint64_t seed, std::string_view name, Device device = defaults().device);

// While a NoGrad lives, ops on this thread are not recorded in the graph. Functions that differentiate, such as
// value_and_grad(f), record the ops of f even so.
class NoGrad {
 public:
  [[nodiscard("a NoGrad has an effect only while it lives; name it: NoGrad guard;")]] NoGrad();

 private:
  ScopedValue<bool> value_;
};
// Whether ops on this thread are recorded.
bool grad_enabled();

}  // namespace plumb

// Formats a Tensor with fmt as to_string() does.
template <>
struct fmt::formatter<plumb::Tensor> : fmt::formatter<std::string_view> {
  auto format(const plumb::Tensor& t, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(plumb::to_string(t), context);
  }
};
