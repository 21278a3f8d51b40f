// Array: a dense, row-major block of elements of one dtype on one device. An Array has no graph; Tensor
// (autograd/tensor.h) adds a graph.
#pragma once

#include <initializer_list>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/scoped_value.h"
#include "core/shape.h"
#include "core/storage.h"

namespace plumb {

struct HostValues;

// A handle to a block of elements: copies share the buffer. There are no strided views. reshaped() shares the buffer;
// every other operation that moves elements is a kernel. Therefore every kernel gets contiguous memory, without a
// check.
class Array {
 public:
  Array() = default;                                      // no buffer: defined() returns false
  Array(const Shape& shape, DType dtype, Device device);  // allocates the elements, uninitialised

  // Whether the array has a buffer.
  bool defined() const { return storage_ != nullptr; }
  // The properties of the array. dim(i) is the extent of axis i; a negative i counts from the end, and an i out of
  // range throws Error. numel() is the number of elements. An undefined array has dtype f32 and device cpu.
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t numel() const { return numel_; }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device : Device::cpu; }

  // The elements of an array in host memory. Throws Error if the array is undefined, if T is not the C++ type of
  // dtype(), or if the array is on a device. The message about an array on a device names the calling function. Host
  // code gets the elements of such an array with to_vector(), item() or on_host().
  template <class T>
  const T* data(std::source_location asked = std::source_location::current()) const {
    if (!storage_ || dtype_of<T> != dtype_ || !in_host_memory(storage_->device)) [[unlikely]]
      refuse_read(dtype_of<T>, asked);
    return static_cast<const T*>(storage_->data);
  }
  // The memory of the elements as untyped bytes. The array must be defined. Throws Error if the array is on a device.
  const void* bytes(std::source_location asked = std::source_location::current()) const {
    if (!in_host_memory(storage_->device)) [[unlikely]]
      refuse_read(dtype_, asked);
    return storage_->data;
  }
  // The address of the elements in the memory of device(), which may not be host memory. Kernels and Memory use this
  // address. The array must be defined.
  const void* address() const { return storage_->data; }
  // The size of all elements in bytes.
  std::size_t size_in_bytes() const { return static_cast<std::size_t>(numel_) * size_of(dtype_); }

  // An array with the same elements and another shape, which shares the buffer. Throws Error if the number of elements
  // differs.
  Array reshaped(const Shape& shape) const;

  // The number of in-place changes that were recorded for the buffer. The backward pass compares this number to detect
  // that a saved array was changed. bump_version() records one change. The array must be defined.
  std::uint32_t version() const { return storage_->version; }
  void bump_version() const { ++storage_->version; }
  // Whether this array and `other` use the same buffer.
  bool shares_buffer_with(const Array& other) const { return storage_ == other.storage_; }
  // Whether no other handle uses the buffer.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  friend std::vector<Array> arrays_from(const std::vector<HostValues>& values, Device device);
  [[noreturn]] void refuse_read(DType as, const std::source_location& asked) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  std::int64_t numel_ = 0;
  DType dtype_ = DType::f32;
};

// An array for writing: the result of a kernel, or a new array that host code fills. Code that changes an existing
// array in place must call bump_version() if the backward pass may have saved the array.
class Out : public Array {
 public:
  Out() = default;             // a result that the kernel need not compute
  Out(Array& a) : Array(a) {}  // NOLINT(google-explicit-constructor): the parameter of kernels(y).fill(0, y) is an Out
  Out(Array&& a) : Array(std::move(a)) {}     // NOLINT(google-explicit-constructor)
  explicit Out(const Array& a) : Array(a) {}  // explicit, so that a write to a const array is visible at the call

  // The elements for writing. The errors are the same as for data(), bytes() and address().
  template <class T>
  T* mutable_data(std::source_location asked = std::source_location::current()) const {
    return const_cast<T*>(data<T>(asked));
  }
  void* mutable_bytes(std::source_location asked = std::source_location::current()) const {
    return const_cast<void*>(bytes(asked));
  }
  void* mutable_address() const { return const_cast<void*>(address()); }
};

// The dtype and the device of a new tensor, if the call does not name them, as in zeros({3}).
struct Defaults {
  DType dtype = DType::f32;
  Device device = Device::cpu;
};
// The defaults of this thread: f32 on cpu unless a DefaultsScope is open.
const Defaults& defaults();
// Sets the defaults of this thread until the scope ends. Scopes nest.
class DefaultsScope {
 public:
  [[nodiscard(
      "the defaults apply only while the scope lives; name it: DefaultsScope scope({..});")]] explicit DefaultsScope(Defaults
                                                                                                                         d);

 private:
  ScopedValue<Defaults> value_;
};

// The text of errors about an undefined tensor.
inline constexpr const char* expected_a_tensor =
    "expected a tensor, got an undefined tensor (from Gradients::find() of no variable of this graph, or consumed by "
    "an earlier backward(std::move(loss))?)";

// A new, uninitialised array with the dtype and device of `a`, and the shape of `a` or the given shape.
inline Array empty_like(const Array& a) { return Array(a.shape(), a.dtype(), a.device()); }
inline Array empty_like(const Array& a, const Shape& shape) { return Array(shape, a.dtype(), a.device()); }
// A new array with the dtype and device of `a` and the given shape; every element is `value`.
Array full_like(const Array& a, const Shape& shape, double value);

// A new array on `device` with these values in row-major order. The function for double values converts to f32, f64 or
// bf16, and throws Error for another dtype. The other functions make arrays of f32, i64 and u8. Throws Error if the
// number of values differs from the number of elements of `shape`.
Array array_from(std::span<const double> values, const Shape& shape, DType dtype, Device device);
Array array_from(std::span<const float> values, const Shape& shape, Device device);
Array array_from(std::span<const std::int64_t> values, const Shape& shape, Device device);
Array array_from(std::span<const std::uint8_t> values, const Shape& shape, Device device);

// All elements, row-major, converted to double from any dtype. Waits for the kernels that the array depends on. Throws
// Error if `a` is undefined.
std::vector<double> to_vector(const Array& a);
// The only element of `a`, converted to double from any dtype. Waits for the kernels that `a` depends on. Throws Error
// if `a` is undefined or does not have exactly one element.
double item(const Array& a);
// `a` itself if `a` is on `device`, else a copy on `device`. A copy from a device to the host waits for the kernels
// that `a` depends on.
Array to_device(const Array& a, Device device);
// `a` itself if `a` is undefined or in host memory, else a copy in host memory. Host code reads elements from the
// result.
inline Array on_host(const Array& a) { return in_host_memory(a.device()) ? a : to_device(a, Device::cpu); }
// Whether two arrays hold the same bytes. Throws Error if their shapes or dtypes differ. Waits like to_device().
bool same_bytes(const Array& a, const Array& b);
// Copies the elements of `from` into the buffer of `to`, across devices if necessary, and increases the version of
// `to`. Throws Error if an array is undefined, or if shapes or dtypes differ.
void copy_into(const Array& from, const Array& to);

}  // namespace plumb
