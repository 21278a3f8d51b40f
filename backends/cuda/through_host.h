// A kernel that the device does not have yet: its arrays go to the host, the cpu backend computes, and what it wrote comes back. Slow, and right.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/backend.h"

namespace plumb::cuda {

// The arrays of one call on the host, each buffer once, whatever shapes it is seen in: operands may be one another's results.
class Mirror {
 public:
  Array of(const Array& a) {
    if (!a.defined()) return {};
    const auto [entry, fresh] = host_.try_emplace(a.address());
    if (fresh) entry->second = to_device(a, Device::cpu);
    return entry->second.reshaped(a.shape());
  }
  Out of(const Out& a) {
    if (!a.defined()) return {};
    Out host(of(static_cast<const Array&>(a)));
    written_.emplace_back(host, a);
    return host;
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
  AdamWUpdate of(const AdamWUpdate& u) { return {u.step, of(u.gradient), of(u.parameter), of(u.moment1), of(u.moment2)}; }
  template <class T>
  std::vector<T> of(std::span<const T> all) {
    std::vector<T> host;
    for (const T& one : all) host.push_back(of(one));
    return host;
  }
  std::span<const int> of(std::span<const int> numbers) { return numbers; }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T of(T value) { return value; }
  template <class T>
  requires requires(const T& step) { step.gradient_scale; }
  T of(const T& step) { return step; }
  Conv2dOptions of(const Conv2dOptions& options) { return options; }

  void bring_back() {
    for (const auto& [host, device] : written_) memory_of(Device::cuda).upload(host.address(), device.mutable_address(), device.size_in_bytes());
  }

 private:
  std::unordered_map<const void*, Array> host_;
  std::vector<std::pair<Out, Out>> written_;
};

template <auto entry>
struct ThroughHost;
template <class... Args, void (*Kernels::*entry)(Args...)>
struct ThroughHost<entry> {
  static void call(Args... args) {
    Mirror mirror;
    (cpu_kernels().*entry)(mirror.of(args)...);
    mirror.bring_back();
  }
};

template <auto entry>
inline constexpr auto through_host = &ThroughHost<entry>::call;

}  // namespace plumb::cuda
