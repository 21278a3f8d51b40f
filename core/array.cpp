#include "core/array.h"

#include <algorithm>
#include <cstring>

#include "core/backend.h"
#include "core/host_values.h"
#include "core/memory.h"

namespace plumb {
namespace {

Defaults& thread_defaults() {
  thread_local Defaults d;
  return d;
}

template <class T, class From>
Array copied(std::span<const From> values, const Shape& shape, Device device) {
  check(static_cast<std::int64_t>(values.size()) == shape.numel(), "[array] expected {} values for shape {}, got {}",
        shape.numel(), shape, values.size());
  Out a(Array(shape, dtype_of<T>, in_host_memory(device) ? device : Device::cpu));
  std::ranges::transform(values, a.mutable_data<T>(), [](From v) { return static_cast<T>(v); });
  return to_device(a, device);
}

}  // namespace

const Defaults& defaults() { return thread_defaults(); }
DefaultsScope::DefaultsScope(Defaults d) : value_(thread_defaults(), d) {}

Array::Array(const Shape& shape, DType dtype, Device device)
    : storage_(std::make_shared<Storage>(static_cast<std::size_t>(shape.numel()) * size_of(dtype), device)),
      shape_(shape),
      numel_(shape.numel()),
      dtype_(dtype) {}

void Array::refuse_read(DType as, const std::source_location& asked) const {
  check(defined(), "[array] expected an array to read with data<{}>(), got an undefined one", type_name(as));
  check(in_host_memory(device()),
        "[array] expected an array in host memory, got one on {} in {} ({}:{}): use values(), item() or on_host()",
        enum_name(device()), asked.function_name(),
        std::string_view(asked.file_name()).substr(std::string_view(asked.file_name()).rfind('/') + 1), asked.line());
  fail(fmt::format("[array] expected the elements of an {} array to be read with data<{}>(), got data<{}>()",
                   enum_name(dtype_), type_name(dtype_), type_name(as)));
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
  check(is_real(dtype), "[array] expected f32, f64 or bf16 for floating values, got {}", enum_name(dtype));
  if (dtype == DType::f64) return copied<double>(values, shape, device);
  return dtype == DType::f32 ? copied<float>(values, shape, device) : copied<bfloat16>(values, shape, device);
}
Array array_from(std::span<const float> values, const Shape& shape, Device device) {
  return copied<float>(values, shape, device);
}
Array array_from(std::span<const std::int64_t> values, const Shape& shape, Device device) {
  return copied<std::int64_t>(values, shape, device);
}
Array array_from(std::span<const std::uint8_t> values, const Shape& shape, Device device) {
  return copied<std::uint8_t>(values, shape, device);
}

std::vector<Array> arrays_from(const std::vector<HostValues>& values, Device device) {
  constexpr std::size_t alignment = 256;
  std::vector<std::size_t> begin;
  std::size_t size = 0;
  const auto bytes_of = [](const HostValues& v) {
    return static_cast<std::size_t>(v.shape.numel()) * size_of(v.dtype);
  };
  for (const HostValues& v : values) {
    begin.push_back(size);
    size += (bytes_of(v) + alignment - 1) / alignment * alignment;
  }
  const Out host(
      Array(Shape{static_cast<std::int64_t>(size)}, DType::u8, in_host_memory(device) ? device : Device::cpu));
  std::size_t i = 0;
  for (const HostValues& v : values) {
    if (const std::size_t n = bytes_of(v); n > 0) std::memcpy(host.mutable_data<std::uint8_t>() + begin[i], v.data, n);
    ++i;
  }
  const Array whole = to_device(host, device);
  std::vector<Array> arrays;
  for (const HostValues& v : values) {
    Array& a = arrays.emplace_back();
    a.storage_ = std::make_shared<Storage>(whole.storage_, begin[arrays.size() - 1], bytes_of(v));
    a.shape_ = v.shape, a.numel_ = v.shape.numel(), a.dtype_ = v.dtype;
  }
  return arrays;
}

std::vector<double> to_vector(const Array& a) {
  check(a.defined(), "[values] {}", expected_a_tensor);
  const Array host = on_host(a);
  return dispatch_any(a.dtype(),
                      [&]<class T>() { return std::vector<double>(host.data<T>(), host.data<T>() + a.numel()); });
}

double item(const Array& a) {
  check(a.defined(), "[item] {}", expected_a_tensor);
  check(a.numel() == 1, "[item] expected one element, got shape {}", a.shape());
  return dispatch_any(a.dtype(), [&]<class T>() {
    T value;
    memory_of(a.device()).download(a.address(), &value, sizeof value);
    return static_cast<double>(value);
  });
}

Array to_device(const Array& a, Device device) {
  if (a.device() == device) return a;
  Array copy(a.shape(), a.dtype(), device);
  copy_into(a, copy);
  return copy;
}

bool same_bytes(const Array& a, const Array& b) {
  check(a.shape() == b.shape() && a.dtype() == b.dtype(),
        "[same_bytes] expected arrays of one shape and dtype, got {} {} and {} {}", enum_name(a.dtype()), a.shape(),
        enum_name(b.dtype()), b.shape());
  return std::memcmp(on_host(a).bytes(), on_host(b).bytes(), a.size_in_bytes()) == 0;
}

double sum_of_squares(std::span<const Array> arrays) {
  check(!arrays.empty(), "[sum_of_squares] expected at least one array, got none");
  Array sum({}, DType::f64, arrays[0].device());
  kernels(sum).sum_of_squares(arrays, sum);
  return item(sum);
}

void copy_into(const Array& from, const Array& to) {
  check(from.defined() && to.defined(), "[copy] {}", expected_a_tensor);
  check(from.shape() == to.shape() && from.dtype() == to.dtype(), "[copy] expected {} {}, got {} {}",
        enum_name(to.dtype()), to.shape(), enum_name(from.dtype()), from.shape());
  const std::size_t bytes = to.size_in_bytes();
  void* const target = Out(to).mutable_address();
  const bool from_host = in_host_memory(from.device()), to_host = in_host_memory(to.device());
  if (from.shares_buffer_with(to)) {
    // The two arrays already hold the same bytes.
  } else if (from_host == to_host) {
    memory_of(to.device()).copy(from.address(), target, bytes);
  } else if (from_host) {
    memory_of(to.device()).upload(from.address(), target, bytes);
  } else {
    memory_of(from.device()).download(from.address(), target, bytes);
  }
  to.bump_version();
}

}  // namespace plumb
