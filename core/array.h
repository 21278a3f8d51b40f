// Array: data without a graph. A handle (copies share the buffer) to a dense, row-major block of one dtype on one
// device. There are no strided views: reshaping shares the buffer, everything else that moves elements is a kernel. So
// every kernel gets contiguous memory, and none of them checks for it.
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

class Array {
 public:
  Array() = default;                                      // no array: defined() is false
  Array(const Shape& shape, DType dtype, Device device);  // uninitialised

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t numel() const { return numel_; }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device : Device::cpu; }

  // The elements, of an array in host memory, and their bytes. Throw for one of another device, whose elements host
  // code gets from to_vector, item or on_host, naming the function that asked; and data, unless T is the dtype's type.
  template <class T>
  const T* data(std::source_location asked = std::source_location::current()) const {
    if (!storage_ || dtype_of<T> != dtype_ || !in_host_memory(storage_->device)) [[unlikely]]
      refuse_read(dtype_of<T>, asked);
    return static_cast<const T*>(storage_->data);
  }
  const void* bytes(std::source_location asked = std::source_location::current()) const {
    if (!in_host_memory(storage_->device)) [[unlikely]]
      refuse_read(dtype_, asked);
    return storage_->data;
  }
  // Where they lie in the device's memory, whichever that is: for its kernels and its Memory.
  const void* address() const { return storage_->data; }
  std::size_t size_in_bytes() const { return static_cast<std::size_t>(numel_) * size_of(dtype_); }

  // The same elements under another shape of as many elements; shares the buffer.
  Array reshaped(const Shape& shape) const;

  std::uint32_t version() const { return storage_->version; }
  void bump_version() const { ++storage_->version; }
  bool shares_buffer_with(const Array& other) const { return storage_ == other.storage_; }
  bool unique() const { return storage_.use_count() == 1; }

 private:
  friend std::vector<Array> arrays_from(const std::vector<HostValues>& values, Device device);
  [[noreturn]] void refuse_read(DType as, const std::source_location& asked) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  std::int64_t numel_ = 0;
  DType dtype_ = DType::f32;
};

// An array that is written: what kernels give their results to, and who else fills a fresh array. Whoever changes one
// in place that others may have saved calls bump_version().
class Out : public Array {
 public:
  Out() = default;             // a result that nobody wants
  Out(Array& a) : Array(a) {}  // NOLINT(google-explicit-constructor): in kernels(y).fill(0, y) the parameter says it
  Out(Array&& a) : Array(std::move(a)) {}     // NOLINT(google-explicit-constructor)
  explicit Out(const Array& a) : Array(a) {}  // of what was not made here it is to be said

  template <class T>
  T* mutable_data(std::source_location asked = std::source_location::current()) const {
    return const_cast<T*>(data<T>(asked));
  }
  void* mutable_bytes(std::source_location asked = std::source_location::current()) const {
    return const_cast<void*>(bytes(asked));
  }
  void* mutable_address() const { return const_cast<void*>(address()); }
};

// What `zeros({3})` and the like make when nothing else is said: f32 on cpu, per thread.
struct Defaults {
  DType dtype = DType::f32;
  Device device = Device::cpu;
};
const Defaults& defaults();
class DefaultsScope {
 public:
  [[nodiscard(
      "the defaults are the scope's while it lives; name it: DefaultsScope scope({..});")]] explicit DefaultsScope(Defaults
                                                                                                                       d);

 private:
  ScopedValue<Defaults> value_;
};

// What messages say where there is none.
inline constexpr const char* expected_a_tensor =
    "expected a tensor, got an undefined tensor (given up by an earlier backward(std::move(loss))?)";

inline Array empty_like(const Array& a) { return Array(a.shape(), a.dtype(), a.device()); }
inline Array empty_like(const Array& a, const Shape& shape) { return Array(shape, a.dtype(), a.device()); }
Array full_like(const Array& a, const Shape& shape, double value);

// Host values in, host values out. Floating arrays convert; integers must match the dtype.
Array array_from(std::span<const double> values, const Shape& shape, DType dtype, Device device);  // f32, f64 or bf16
Array array_from(std::span<const float> values, const Shape& shape, Device device);                // f32
Array array_from(std::span<const std::int64_t> values, const Shape& shape, Device device);         // i64
Array array_from(std::span<const std::uint8_t> values, const Shape& shape, Device device);         // u8
// Several arrays of host values, of these bytes, in one buffer, which goes to a device in one copy.
struct HostValues {
  const void* data;
  Shape shape;
  DType dtype;
};
std::vector<Array> arrays_from(const std::vector<HostValues>& values, Device device);
std::vector<double> to_vector(const Array& a);  // any dtype; waits for what it depends on
double item(const Array& a);                    // the one element of `a`; waits likewise
Array to_device(const Array& a,
                Device device);  // `a` itself, if it is there, else a copy; waits likewise if it comes to the host
// For host code to read: `a` itself, if it is in host memory or undefined, else a copy.
inline Array on_host(const Array& a) { return in_host_memory(a.device()) ? a : to_device(a, Device::cpu); }
bool same_bytes(const Array& a, const Array& b);     // of one shape and dtype; waits likewise
void copy_into(const Array& from, const Array& to);  // same shape and dtype; bumps `to`'s version

}  // namespace plumb
