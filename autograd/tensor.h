// Tensor: an Array with its place in the graph; the type users see. A handle: copies share data and node.
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
  explicit Tensor(Array array, std::shared_ptr<Node> node = nullptr)
      : array_(std::move(array)), node_(std::move(node)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // To a name alone: x[0] = y would change a handle that is gone at once, and does not compile.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  ~Tensor() = default;

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
  // x[i, ..], without the first axis; a negative i counts from the end. An op: gradients flow through it.
  Tensor operator[](std::int64_t i) const;

  double item() const { return plumb::item(array_); }  // the one element
  std::vector<double> values() const {
    return to_vector(array_);
  }  // all elements, row-major; throws for an undefined tensor

  // Calls `hook` with the complete gradient of this tensor in each backward pass; what it returns, unless undefined,
  // takes the gradient's place and must have its shape, dtype and device. The hook is gone with the handle. Throws for
  // a tensor that requires no gradient.
  [[nodiscard("the hook is gone with its handle: keep it")]] Handle on_gradient(
      std::function<Tensor(const Tensor& gradient)> hook) const;

 private:
  Array array_;
  std::shared_ptr<Node> node_;
};

// What fmt shows of a tensor: dtype, shape, device if it is not the cpu, and values with four digits. Beyond 200
// elements an axis of more than six shows its first and last three.
//   fmt::print("{}\n", t);
//   f32 [2, 3]
//   [[1, 0.5, -2],
//    [4,   5,  6]]
std::string to_string(const Tensor& t);
// "f32 [2, 3]", with its device if that is not the cpu; "an undefined tensor". For messages.
std::string describe(const Tensor& x);

// A leaf that gradients are collected for. The tensor shares the array's buffer: updating it in place moves the
// variable.
Tensor variable(const Array& value);
inline Tensor variable(const Tensor& value) { return variable(value.array()); }

// ---- makers of constants (makers.cpp), in the thread's default dtype on its default device unless said (core/array.h)
// -----------------------
Tensor full(const Shape& shape, double value, Defaults where = defaults());
inline Tensor zeros(const Shape& shape, Defaults where = defaults()) { return full(shape, 0, where); }
inline Tensor ones(const Shape& shape, Defaults where = defaults()) { return full(shape, 1, where); }
Tensor full_like(const Tensor& x, double value);  // of x's shape and dtype, on its device
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor tensor(const std::vector<double>& values, const Shape& shape, Defaults where = defaults());
Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape,
                Device device = defaults().device);  // i64, as labels and indices are

// A number, or a list of such: {{1, 2}, {3, 4}}. Integers take no fractions.
template <class N, class T>
concept NumberOf = std::is_arithmetic_v<N> &&(std::is_integral_v<N> || std::is_floating_point_v<T>);
template <class T>
class NestedList {
 public:
  template <NumberOf<T> N>
  NestedList(N number) : number_(static_cast<T>(number)), is_list_(false) {}  // NOLINT(google-explicit-constructor)
  NestedList(std::initializer_list<NestedList> items) : items_(items) {}      // NOLINT(google-explicit-constructor)
  const std::vector<NestedList>* items() const { return is_list_ ? &items_ : nullptr; }  // null: a number
  T number() const { return number_; }

 private:
  std::vector<NestedList> items_ = {};
  T number_ = 0;
  bool is_list_ = true;
};
// tensor({{1, 2}, {3, 4}}) is [2, 2], tensor(5.0) a scalar. Lists side by side must be as long as one another: the
// error says which is not.
Tensor tensor(const NestedList<double>& values);
Tensor integers(const NestedList<std::int64_t>& values);
// The same elsewhere. (Templates, so that in tensor({2}, {}) the second is a shape.)
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

// begin, begin + step, .., up to but without `end`: i64 where all are integers, else floating. The step leads from
// begin towards end.
Tensor arange(double begin, double end, double step = 1, Defaults where = defaults());
Tensor arange(double end, Defaults where = defaults());  // from 0
namespace detail {
Tensor arange_integers(std::int64_t begin, std::int64_t end, std::int64_t step, Device device);
}
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
// `count` numbers at equal distances from first to last, both included; one is `first`.
Tensor linspace(double first, double last, std::int64_t count, Defaults where = defaults());
Tensor eye(std::int64_t rows, std::int64_t columns, Defaults where = defaults());  // 1 on the diagonal, else 0
inline Tensor eye(std::int64_t rows, Defaults where = defaults()) { return eye(rows, rows, where); }
// index i64 [..] in 0 .. classes - 1 -> [.., classes] on index's device: 1 at the index, else 0. Waits for index.
Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype = defaults().dtype);

// Draws: functions of (seed, name) and the element only.
Tensor random_normal(const Shape& shape, std::uint64_t seed, std::string_view name,
                     Defaults where = defaults());  // standard normal
Tensor random_normal_like(const Tensor& x, std::uint64_t seed, std::string_view name);
Tensor random_uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::string_view name,
                      Defaults where = defaults());  // in [low, high]; high itself by rounding alone
Tensor random_permutation(std::int64_t n, std::uint64_t seed, std::string_view name,
                          Device device = defaults().device);  // of 0 .. n - 1, i64

// While one is alive on this thread, nothing is recorded.
class NoGrad {
 public:
  [[nodiscard("nothing is recorded while it lives; name it: NoGrad guard;")]] NoGrad();

 private:
  ScopedValue<bool> value_;
};
// The opposite, inside a NoGrad.
class EnableGrad {
 public:
  [[nodiscard("recording is on while it lives; name it: EnableGrad guard;")]] EnableGrad();

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
