// The cost of a kernel call, computed from its arguments: the bytes of the arrays that the kernel reads and writes,
// each counted once, and the floating-point operations of matrix products. Profile uses these numbers.
#pragma once

#include <span>
#include <type_traits>

#include "core/backend.h"

namespace plumb::detail {

// The bytes of an operand: an array, a struct of arrays, or a list of updates. The result is 0 for operands without
// arrays.
inline double bytes_of(const Array& a) {
  return a.defined() ? static_cast<double>(a.numel()) * static_cast<double>(size_of(a.dtype())) : 0;
}
inline double bytes_of(const LinearCall& c) {
  return bytes_of(c.gamma) + bytes_of(c.beta) + bytes_of(c.skip) + bytes_of(c.gate) + bytes_of(c.row_scale);
}
template <class A>
double bytes_of(const LinearKeptOf<A>& k) {
  return bytes_of(k.mean) + bytes_of(k.rstd) + bytes_of(k.slope);
}
inline double bytes_of(const LinearGradients& d) {
  return bytes_of(d.dx) * (d.add_to_dx ? 2 : 1) + bytes_of(d.dw) + bytes_of(d.db) + bytes_of(d.dgamma) +
         bytes_of(d.dbeta) + bytes_of(d.dgate);
}
// An update reads four arrays and writes three.
inline double bytes_of(const AdamWUpdate& u) { return 7 * bytes_of(u.parameter); }
inline double bytes_of(const SgdUpdate& u) { return 3 * bytes_of(u.parameter) + 2 * bytes_of(u.velocity); }
inline double bytes_of(const AdagradUpdate& u) { return 5 * bytes_of(u.parameter); }
inline double bytes_of(const EmaUpdate& u) { return 3 * bytes_of(u.average); }
template <class Update>
requires requires(const Update& u) { bytes_of(u); }
double bytes_of(std::span<const Update> updates) {
  double sum = 0;
  for (const Update& u : updates) sum += bytes_of(u);
  return sum;
}
template <class T>
requires(!std::is_base_of_v<Array, T>) double bytes_of(const T&) { return 0; }

// The bytes of the arrays in a call of the kernel `entry`, a member of Kernels. For attention, the bytes follow from
// the extents of the call, because heads may be only a part of a buffer.
template <auto entry>
struct Bytes {
  template <class... Args>
  static double of(const Args&... args) {
    return (bytes_of(args) + ... + 0.0);
  }
};
inline double bytes_of_heads(const AttentionCall& c, const Heads& any, int of_queries, int of_keys) {
  const std::int64_t tokens = of_queries * c.queries + of_keys * c.keys;
  return static_cast<double>(c.batch * c.heads * tokens * c.head_dim) * static_cast<double>(size_of(any.array.dtype()));
}
template <>
struct Bytes<&Kernels::attention_forward> {
  static double of(const AttentionCall& c, const Heads& q, const Heads&, const Heads&, const HeadsOut&,
                   const Array& sums) {
    return bytes_of_heads(c, q, 2, 2) + bytes_of(sums) +
           bytes_of(c.keep);  // two arrays of queries (q, out), two of keys (k, v)
  }
};
template <>
struct Bytes<&Kernels::attention_backward> {
  template <class... Gradients>
  static double of(const AttentionCall& c, const Heads&, const Heads& q, const Heads&, const Heads&, const Array& sums,
                   const Gradients&...) {
    return bytes_of_heads(c, q, 3, 4) + bytes_of(sums) +
           bytes_of(c.keep);  // three arrays of queries (dout, q, dq), four of keys (k, v, dk, dv)
  }
};

inline double elements(const Array& a) { return static_cast<double>(a.numel()); }

// The floating-point operations in a call of the kernel `entry`, a member of Kernels; 0 unless the kernel computes a
// matrix product.
template <auto entry>
struct Operations {
  template <class... Args>
  static double of(const Args&...) {
    return 0;
  }
};
template <>
struct Operations<&Kernels::matmul> {
  static double of(const Array& a, bool transpose_a, const Array&, bool, const Array& y) {
    return 2 * elements(y) * static_cast<double>(a.dim(transpose_a ? -2 : -1));
  }
};
template <>
struct Operations<&Kernels::linear_forward> {
  static double of(const LinearCall&, const Array& x, const Array&, const Array&, const LinearKeptOut&,
                   const Array& y) {
    return 2 * elements(y) * static_cast<double>(x.dim(-1));
  }
};
template <>
struct Operations<&Kernels::linear_backward> {
  static double of(const LinearCall&, const LinearKept&, const Array& dy, const Array&, const Array& w, const Array&,
                   const LinearGradients& d) {
    return 2 * elements(dy) * static_cast<double>(w.dim(1)) * (d.dx.defined() + d.dw.defined());
  }
};
template <>
struct Operations<&Kernels::conv2d_forward> {
  static double of(const Array&, const Array& w, const Array&, const Conv2dGeometry&, const Array& y) {
    return 2 * elements(y) * elements(w) / static_cast<double>(w.dim(0));
  }
};
template <>
struct Operations<&Kernels::conv2d_backward> {
  static double of(const Array& dy, const Array&, const Array& w, const Conv2dGeometry&, const Array& dx,
                   const Array& dw, const Array&) {
    return 2 * elements(dy) * elements(w) / static_cast<double>(w.dim(0)) * (dx.defined() + dw.defined());
  }
};
// The operations of one matrix product in attention, such as q k^T.
inline double attention_product(const AttentionCall& c) {
  return 2.0 * static_cast<double>(c.batch * c.heads * c.queries * c.keys * c.head_dim);
}
template <>
struct Operations<&Kernels::attention_forward> {
  template <class... Rest>
  static double of(const AttentionCall& call, const Rest&...) {
    return 2 * attention_product(call);
  }
};
template <>
struct Operations<&Kernels::attention_backward> {
  template <class... Rest>
  static double of(const AttentionCall& call, const Rest&...) {
    return 5 * attention_product(call);
  }
};

}  // namespace plumb::detail
