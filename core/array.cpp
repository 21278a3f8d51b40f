#include "core/array.h"

#include <algorithm>

#include "core/backend.h"
#include "core/memory.h"

namespace plumb {
namespace {

Defaults& thread_defaults() {
  thread_local Defaults d;
  return d;
}

template <class T, class From>
Array copied(std::span<const From> values, const Shape& shape, Device device) {
  check(static_cast<std::int64_t>(values.size()) == shape.numel(), "[array] expected {} values for shape {}, got {}", shape.numel(), shape,
        values.size());
  Out a(Array(shape, dtype_of<T>, device));
  if (Memory& memory = memory_of(device); memory.on_host()) {
    std::ranges::transform(values, a.mutable_data<T>(), [](From v) { return static_cast<T>(v); });
  } else {
    std::vector<T> converted(values.size());
    std::ranges::transform(values, converted.begin(), [](From v) { return static_cast<T>(v); });
    memory.upload(converted.data(), a.mutable_bytes(), converted.size() * sizeof(T));
  }
  return a;
}

}  // namespace

const Defaults& defaults() { return thread_defaults(); }
DefaultsScope::DefaultsScope(Defaults d) : value_(thread_defaults(), d) {}

Array::Array(const Shape& shape, DType dtype, Device device)
    : storage_(std::make_shared<Storage>(static_cast<std::size_t>(shape.numel()) * size_of(dtype), device)),
      shape_(shape),
      numel_(shape.numel()),
      dtype_(dtype) {}

void Array::refuse_read(DType as) const {
  check(defined(), "[array] expected an array to read with data<{}>(), got an undefined one", type_name(as));
  fail(fmt::format("[array] expected the elements of an {} array to be read with data<{}>(), got data<{}>()", name(dtype_), type_name(dtype_),
                   type_name(as)));
}

Array Array::reshaped(const Shape& shape) const {
  check(shape.numel() == numel_, "[reshape] expected a shape of {} elements like {}, got {}", numel_, shape_, shape);
  Array a = *this;
  a.shape_ = shape;
  return a;
}

Array full_like(const Array& a, const Shape& shape, double value) {
  Array y = empty_like(a, shape);
  kernels(y).fill(value, y);
  return y;
}

Array array_from(std::span<const double> values, const Shape& shape, DType dtype, Device device) {
  check(is_real(dtype), "[array] expected f32, f64 or bf16 for floating values, got {}", name(dtype));
  if (dtype == DType::f64) return copied<double>(values, shape, device);
  return dtype == DType::f32 ? copied<float>(values, shape, device) : copied<bfloat16>(values, shape, device);
}
Array array_from(std::span<const float> values, const Shape& shape, Device device) { return copied<float>(values, shape, device); }
Array array_from(std::span<const std::int64_t> values, const Shape& shape, Device device) { return copied<std::int64_t>(values, shape, device); }
Array array_from(std::span<const std::uint8_t> values, const Shape& shape, Device device) { return copied<std::uint8_t>(values, shape, device); }

std::vector<double> to_vector(const Array& a) {
  check(a.defined(), "[values] {}", expected_a_tensor);
  return dispatch_any(a.dtype(), [&]<class T>() {
    Memory& memory = memory_of(a.device());
    if (memory.on_host()) return std::vector<double>(a.data<T>(), a.data<T>() + a.numel());
    std::vector<T> values(static_cast<std::size_t>(a.numel()));
    memory.download(a.bytes(), values.data(), values.size() * sizeof(T));
    return std::vector<double>(values.begin(), values.end());
  });
}

double item(const Array& a) {
  check(a.defined(), "[item] {}", expected_a_tensor);
  check(a.numel() == 1, "[item] expected one element, got shape {}", a.shape());
  return dispatch_any(a.dtype(), [&]<class T>() {
    T value;
    memory_of(a.device()).download(a.bytes(), &value, sizeof value);
    return static_cast<double>(value);
  });
}

double sum_of_squares(std::span<const Array> arrays) {
  check(!arrays.empty(), "[sum_of_squares] expected at least one array, got none");
  Array sum({}, DType::f64, arrays[0].device());
  kernels(sum).sum_of_squares(arrays, sum);
  return item(sum);
}

void copy_into(const Array& from, const Array& to) {
  check(from.defined() && to.defined(), "[copy] {}", expected_a_tensor);
  check(from.shape() == to.shape() && from.dtype() == to.dtype(), "[copy] expected {} {}, got {} {}", name(to.dtype()), to.shape(),
        name(from.dtype()), from.shape());
  const std::size_t bytes = static_cast<std::size_t>(to.numel()) * size_of(to.dtype());
  void* const target = Out(to).mutable_bytes();
  Memory &source = memory_of(from.device()), &memory = memory_of(to.device());
  if (from.shares_buffer_with(to)) {
    // the same bytes already
  } else if (&source == &memory) {
    memory.copy(from.bytes(), target, bytes);
  } else if (source.on_host()) {
    memory.upload(from.bytes(), target, bytes);
  } else {
    std::vector<std::byte> host(memory.on_host() ? 0 : bytes);
    source.download(from.bytes(), memory.on_host() ? target : host.data(), bytes);
    if (!memory.on_host()) memory.upload(host.data(), target, bytes);
  }
  to.bump_version();
}

}  // namespace plumb
