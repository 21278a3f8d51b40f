// Makes constants: filled, from lists, as sequences, and random.
#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/tensor.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Appends the numbers of `list` to `values` and checks the extents of `list` against those of the first lists. `path`
// is the position of the list, such as "[1][0]".
template <class T>
void flatten_into(const NestedList<T>& list, const std::string& path, std::size_t depth, const char* op,
                  const std::vector<std::int64_t>& extents, std::vector<T>& values) {
  const auto* items = list.items();
  const auto place = [&] { return path.empty() ? "the top" : path; };
  if (!items) {
    check(depth == extents.size(), "[{}] expected a list at {}, as in the first list, got the number {}", op, place(),
          list.number());
    values.push_back(list.number());
    return;
  }
  check(depth < extents.size(), "[{}] expected a number at {}, as in the first list, got a list of {}", op, place(),
        items->size());
  const auto count = static_cast<std::int64_t>(items->size());
  check(
      count == extents[depth],
      "[{}] expected lists of equal length at each depth, got {} elements at {} and {} in the first list of that depth",
      op, count, place(), extents[depth]);
  for (std::size_t i = 0; i < items->size(); ++i)
    flatten_into((*items)[i], path + fmt::format("[{}]", i), depth + 1, op, extents, values);
}

// Returns the values of a list and their shape, which the first list at each depth decides.
template <class T>
std::pair<std::vector<T>, Shape> flattened(const NestedList<T>& list, const char* op) {
  std::vector<std::int64_t> extents;
  for (const NestedList<T>* at = &list; at->items(); at = &at->items()->front()) {
    extents.push_back(static_cast<std::int64_t>(at->items()->size()));
    if (at->items()->empty()) break;
  }
  std::vector<T> values;
  flatten_into(list, "", 0, op, extents, values);
  return {std::move(values), Shape(extents)};
}

// Numbers on the host that become a tensor. They lie in an array, whose errors name the bytes.
class Numbers {
 public:
  explicit Numbers(const Shape& shape) : array_(Array(shape, DType::f64, Device::cpu)) {}
  std::span<double> all() const { return {array_.mutable_data<double>(), static_cast<std::size_t>(array_.numel())}; }
  Tensor on(Defaults where) const { return Tensor(array_from(all(), array_.shape(), where.dtype, where.device)); }

 private:
  Out array_;
};

Tensor drawn(const Shape& shape, Defaults where, const std::function<double(std::uint64_t element)>& draw) {
  const Numbers numbers(shape);
  for (std::uint64_t i = 0; double& number : numbers.all()) number = draw(i++);
  return numbers.on(where);
}

Defaults like(const char* op, const Tensor& x) {
  check(x.defined(), "[{}] {}", op, expected_a_tensor);
  return {x.dtype(), x.device()};
}

}  // namespace

Tensor full(const Shape& shape, double value, Defaults where) {
  Array y(shape, where.dtype, where.device);
  kernels(y).fill(value, y);
  return Tensor(y);
}

Tensor full_like(const Tensor& x, double value) {
  const Defaults where = like("full_like", x);
  return full(x.shape(), value, where);
}

Tensor zeros_like(const Tensor& x) {
  const Defaults where = like("zeros_like", x);
  return full(x.shape(), 0, where);
}

Tensor ones_like(const Tensor& x) {
  const Defaults where = like("ones_like", x);
  return full(x.shape(), 1, where);
}

Tensor tensor(const std::vector<double>& values, const Shape& shape, Defaults where) {
  return Tensor(array_from(values, shape, where.dtype, where.device));
}

Tensor tensor(const NestedList<double>& values) {
  const auto [numbers, shape] = flattened(values, "tensor");
  return tensor(numbers, shape);
}

Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape, Device device) {
  return Tensor(array_from(values, shape, device));
}

Tensor integers(const NestedList<std::int64_t>& values) {
  const auto [numbers, shape] = flattened(values, "integers");
  return integers(numbers, shape);
}

Tensor arange(double begin, double end, double step, Defaults where) {
  check(std::isfinite(begin) && std::isfinite(end) && std::isfinite(step),
        "[arange] expected finite numbers, got {}, {} and a step of {}", begin, end, step);
  check(step != 0 && (end - begin) / step >= 0, "[arange] expected a step that leads from {} towards {}, got {}", begin,
        end, step);
  const double count = std::ceil((end - begin) / step);
  check(count <= static_cast<double>(Shape::max_numel), "[arange] expected at most 2^59 numbers, got {:.3g}", count);
  return drawn({static_cast<std::int64_t>(count)}, where,
               [&](std::uint64_t i) { return begin + static_cast<double>(i) * step; });
}

Tensor arange(double end, Defaults where) { return arange(0, end, 1, where); }

Tensor detail::arange_integers(std::int64_t begin, std::int64_t end, std::int64_t step, Device device) {
  check(step != 0 && (begin == end || (begin < end) == (step > 0)),
        "[arange] expected a step that leads from {} towards {}, got {}", begin, end, step);
  // Differences of 64-bit integers fit into an unsigned integer.
  const auto first = static_cast<std::uint64_t>(begin), last = static_cast<std::uint64_t>(end),
             by = static_cast<std::uint64_t>(step), distance = step > 0 ? last - first : first - last,
             stride = step > 0 ? by : -by, count = distance / stride + (distance % stride > 0);
  check(count <= static_cast<std::uint64_t>(Shape::max_numel), "[arange] expected at most 2^59 numbers, got {}", count);
  const Out y(
      Array(Shape{static_cast<std::int64_t>(count)}, DType::i64, in_host_memory(device) ? device : Device::cpu));
  for (std::uint64_t i = 0; i < count; ++i)
    y.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(first + i * by);
  return Tensor(to_device(y, device));
}

Tensor linspace(double first, double last, std::int64_t count, Defaults where) {
  check(count >= 0, "[linspace] expected a count of at least 0, got {}", count);
  const double n = static_cast<double>(count - 1);
  return drawn(Shape({count}, "linspace"), where, [&](std::uint64_t i) {
    const auto k = static_cast<double>(i);
    // The numbers are computed from the nearer end, so that both ends are exact.
    if (count == 1) return first;
    return k < n / 2 ? first + k * ((last - first) / n) : last - (n - k) * ((last - first) / n);
  });
}

Tensor eye(std::int64_t rows, std::int64_t columns, Defaults where) {
  check(rows >= 0 && columns >= 0, "[eye] expected extents of at least 0, got {} and {}", rows, columns);
  const auto width = static_cast<std::uint64_t>(columns);
  return drawn(Shape({rows, columns}, "eye"), where,
               [&](std::uint64_t i) { return i / width == i % width ? 1.0 : 0.0; });
}

Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype) {
  check(index.defined(), "[one_hot] {}", expected_a_tensor);
  check(index.dtype() == DType::i64, "[one_hot] expected i64 indices, got {} {}", enum_name(index.dtype()),
        index.shape());
  check(classes >= 0, "[one_hot] expected a number of classes of at least 0, got {}", classes);
  const Numbers numbers(index.shape().appended(classes, "one_hot"));
  std::ranges::fill(numbers.all(), 0.0);
  const Array host = on_host(index.array());
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    const std::int64_t k = host.data<std::int64_t>()[i];
    check(0 <= k && k < classes, "[one_hot] expected indices in 0..{}, got {} at {}", classes - 1, k, i);
    numbers.all()[static_cast<std::size_t>(i * classes + k)] = 1;
  }
  return numbers.on({dtype, index.device()});
}

Tensor random_normal(const Shape& shape, std::uint64_t seed, std::string_view name, Defaults where) {
  const Numbers numbers(shape);
  normal_draws(random_key(seed, name), numbers.all());
  return numbers.on(where);
}

Tensor random_normal_like(const Tensor& x, std::uint64_t seed, std::string_view name) {
  const Defaults where = like("random_normal_like", x);
  return random_normal(x.shape(), seed, name, where);
}

Tensor random_uniform(const Shape& shape, double low, double high, std::uint64_t seed, std::string_view name,
                      Defaults where) {
  check(low <= high && std::isfinite(high - low), "[random_uniform] expected finite bounds low <= high, got {} and {}",
        low, high);
  const std::uint64_t key = random_key(seed, name);
  return drawn(shape, where, [&](std::uint64_t i) { return low + (high - low) * uniform_draw(key, i); });
}

// Sorts the numbers by 64-bit draws, each of two 32-bit words. If draws are equal, the smaller number comes first.
Tensor random_permutation(std::int64_t n, std::uint64_t seed, std::string_view name, Device device) {
  check(n >= 0, "[random_permutation] expected a number of at least 0, got {}", n);
  const std::uint64_t key = random_key(seed, name);
  const Out order(Array(Shape({n}, "random_permutation"), DType::i64, Device::cpu));
  std::vector<std::pair<std::uint64_t, std::int64_t>> drawn_numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto element = static_cast<std::uint64_t>(i);
    const Draw d = element_draw(key, 0, Purpose::init, element / 2);
    const std::size_t word = 2 * (element % 2);
    drawn_numbers.emplace_back(std::uint64_t{d[word]} << 32 | d[word + 1], i);
  }
  std::ranges::sort(drawn_numbers);
  std::ranges::transform(drawn_numbers, order.mutable_data<std::int64_t>(), [](const auto& d) { return d.second; });
  return Tensor(to_device(order, device));
}

}  // namespace plumb
