// Leaves out kernel calls whose results have no elements. Such a call has nothing to write, and a kernel may divide by
// the extents of its results.
#pragma once

#include "core/backend.h"

namespace plumb {

// Whether an argument of a kernel is a result with elements, or contains one. Updates of parameters count as results.
inline bool has_results(const Out& a) { return a.defined() && a.numel() > 0; }
inline bool has_results(const HeadsOut& h) { return has_results(h.array); }
inline bool has_results(const LinearKeptOut& k) {
  return has_results(k.mean) || has_results(k.rstd) || has_results(k.slope);
}
inline bool has_results(const LinearGradients& g) {
  return has_results(g.dx) || has_results(g.dw) || has_results(g.db) || has_results(g.dgamma) || has_results(g.dbeta) ||
         has_results(g.dgate);
}
inline bool has_results(std::span<const AdamWUpdate> updates) { return !updates.empty(); }
inline bool has_results(std::span<const SgdUpdate> updates) { return !updates.empty(); }
inline bool has_results(std::span<const AdagradUpdate> updates) { return !updates.empty(); }
inline bool has_results(std::span<const EmaUpdate> updates) { return !updates.empty(); }
template <class T>
bool has_results(const T&) {
  return false;
}

template <auto kernel>
struct WithResults;
template <class... Args, void (*kernel)(Args...)>
struct WithResults<kernel> {
  static void call(Args... args) {
    if ((has_results(args) || ...)) kernel(args...);
  }
};

// An entry of a kernel table: calls `kernel` if at least one of its results has elements.
template <auto kernel>
inline constexpr auto with_results = &WithResults<kernel>::call;

}  // namespace plumb
