// Runs a kernel call on another device: copies the operands there, runs the kernel, and copies the written results
// back. The CUDA backend runs calls in this way if it has no kernel for them. Tests compare backends in this way.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/backend.h"
#include "core/memory.h"

namespace plumb {

// The arrays of one kernel call, copied to another device. Each buffer is copied once, even if several operands share
// the buffer with different shapes. (A result may also be an operand.) Copies are rounded up to whole granules of
// `granule` bytes. If the granule is larger than 1 (such as a cache line), the bytes after the end of an array are
// copied as well. Then each array must own its memory up to the end of the last granule.
class Mirror {
 public:
  explicit Mirror(Device device, std::size_t granule = 1) : device_(device), granule_(granule) {}

  // The overloads of of() return their argument with each array replaced by its copy on the other device. Undefined
  // arrays stay undefined. bring_back() later copies back every array that was passed as an Out.
  Array of(const Array& a) {
    if (!a.defined()) return {};
    const auto [entry, fresh] = there_.try_emplace(a.address());
    if (fresh) {
      const Out there(Array(a.shape(), a.dtype(), device_));
      copy(a, there);
      entry->second = there;
    }
    return entry->second.reshaped(a.shape());
  }
  Out of(const Out& a) {
    if (!a.defined()) return {};
    Out there(of(static_cast<const Array&>(a)));
    written_.emplace_back(there, a);
    return there;
  }
  template <class A>
  HeadsOf<A> of(const HeadsOf<A>& h) {
    return {of(h.array), h.offset, h.batch, h.head, h.token};
  }
  template <class A>
  LinearKeptOf<A> of(const LinearKeptOf<A>& k) {
    return {of(k.mean), of(k.rstd), of(k.slope)};
  }
  LinearCall of(LinearCall c) {
    for (Array* a : {&c.gamma, &c.beta, &c.skip, &c.gate, &c.row_scale}) *a = of(*a);
    return c;
  }
  LinearGradients of(LinearGradients g) {
    for (Out* a : {&g.dx, &g.dw, &g.db, &g.dgamma, &g.dbeta, &g.dgate}) *a = of(*a);
    return g;
  }
  AttentionCall of(AttentionCall c) {
    c.keep = of(c.keep);
    return c;
  }
  AdamWUpdate of(const AdamWUpdate& u) {
    return {u.step, of(u.gradient), of(u.parameter), of(u.moment1), of(u.moment2)};
  }
  SgdUpdate of(const SgdUpdate& u) { return {u.step, of(u.gradient), of(u.parameter), of(u.velocity)}; }
  AdagradUpdate of(const AdagradUpdate& u) { return {u.step, of(u.gradient), of(u.parameter), of(u.squares)}; }
  EmaUpdate of(const EmaUpdate& u) { return {of(u.value), of(u.average)}; }
  template <class T>
  std::vector<T> of(std::span<const T> all) {
    std::vector<T> host;
    for (const T& one : all) host.push_back(of(one));
    return host;
  }
  std::span<const int> of(std::span<const int> numbers) { return numbers; }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T of(T value) { return value; }
  Conv2dGeometry of(const Conv2dGeometry& options) { return options; }
  Pool2dOptions of(const Pool2dOptions& options) { return options; }

  // Copies all arrays that the kernel has written back to their original buffers.
  void bring_back() {
    for (const auto& [there, here] : written_) copy(there, here);
  }

 private:
  void copy(const Array& from, const Out& to) const {
    const std::size_t bytes = (from.size_in_bytes() + granule_ - 1) / granule_ * granule_;
    if (in_host_memory(from.device()))
      memory_of(to.device()).upload(from.address(), to.mutable_address(), bytes);
    else
      memory_of(from.device()).download(from.address(), to.mutable_address(), bytes);
  }

  Device device_;
  std::size_t granule_;
  std::unordered_map<const void*, Array> there_;
  std::vector<std::pair<Out, Out>> written_;
};

// The function that stands in for the kernel `entry` and runs the kernel on `device`.
template <Device device, std::size_t granule, auto entry>
struct Elsewhere;
template <Device device, std::size_t granule, class... Args, void (*Kernels::*entry)(Args...)>
struct Elsewhere<device, granule, entry> {  // nvcc accepts `entry` only as the last argument
  static void call(Args... args) {
    Mirror mirror(device, granule);
    (detail::kernels_of(device).*entry)(mirror.of(args)...);
    mirror.bring_back();
  }
};

// A function pointer for a kernel table. The function runs the kernel `entry` on `device`. For `granule`, see Mirror.
template <auto entry, Device device, std::size_t granule = 1>
inline constexpr auto elsewhere = &Elsewhere<device, granule, entry>::call;

}  // namespace plumb
