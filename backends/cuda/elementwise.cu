// fill, cast, unary, binary, where, broadcast. One thread computes 16 bytes of the result. If operands broadcast along
// inner axes, one thread computes one element. Traffic: each operand is read once, and the result is written once.
#include <limits>
#include <type_traits>

#include "backends/cuda/index.cuh"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/pack.cuh"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void fill_kernel(T value, T* y, std::int64_t n) {
  constexpr int width = pack_size<T>;
  std::int64_t i = thread_number() * width;
  if (i + width <= n) {
    Pack<T> pack;
    for (T& v : pack.v) v = value;
    store_pack(pack, y + i);
  } else {
    for (; i < n; ++i) y[i] = value;
  }
}

// One thread converts four elements, whatever the sizes of the elements are.
template <class From, class To>
__global__ void cast_kernel(const From* x, To* y, std::int64_t n) {
  std::int64_t i = thread_number() * 4;
  if (i + 4 <= n) {
    const Pack<From, 4> in = load_pack<From, 4>(x + i);
    Pack<To, 4> out;
    for (int j = 0; j < 4; ++j) out.v[j] = static_cast<To>(in.v[j]);
    store_pack(out, y + i);
  } else {
    for (; i < n; ++i) y[i] = static_cast<To>(x[i]);
  }
}

template <Unary op, class T>
__device__ __forceinline__ T apply(T x, T p) {
  using std::sqrt, std::abs, std::pow, std::isnan, std::sin, std::cos, std::floor, std::rint;
  if constexpr (op == Unary::exp) return exp(x);
  if constexpr (op == Unary::log) return log(x);
  if constexpr (op == Unary::tanh) return tanh(x);
  if constexpr (op == Unary::erf) return erf(x);
  if constexpr (op == Unary::sqrt) return sqrt(x);
  if constexpr (op == Unary::rsqrt) return 1 / sqrt(x);
  if constexpr (op == Unary::relu) return x > 0 || isnan(x) ? x : T{0};
  if constexpr (op == Unary::step) return x > 0 ? T{1} : T{0};
  if constexpr (op == Unary::abs) return abs(x);
  if constexpr (op == Unary::sign) return isnan(x) ? x : static_cast<T>((x > 0) - (x < 0));
  if constexpr (op == Unary::log1p) return log1p(x);
  if constexpr (op == Unary::sin) return sin(x);
  if constexpr (op == Unary::cos) return cos(x);
  if constexpr (op == Unary::expm1) return expm1(x);
  if constexpr (op == Unary::floor) return floor(x);
  if constexpr (op == Unary::round) return rint(x);
  if constexpr (op == Unary::sigmoid) {
    const T e = exp(-abs(x));  // e is at most 1, so nothing overflows
    return (x < 0 ? e : T{1}) / (1 + e);
  }
  if constexpr (op == Unary::pow) return pow(x, p);
  if constexpr (op == Unary::multiply) return x * p;
  if constexpr (op == Unary::add) return x + p;
}

template <Unary op, class T>
__global__ void unary_kernel(const T* x, T parameter, T* y, std::int64_t n) {
  constexpr int width = pack_size<T>;
  std::int64_t i = thread_number() * width;
  if (i + width <= n) {
    Pack<T> pack = load_pack(x + i);
    for (T& v : pack.v) v = apply<op>(v, parameter);
    store_pack(pack, y + i);
  } else {
    for (; i < n; ++i) y[i] = apply<op>(x[i], parameter);
  }
}

template <Binary op, class T>
__device__ __forceinline__ T apply_binary(T a, T b) {
  using std::isnan, std::pow;
  if constexpr (op == Binary::add) return a + b;
  if constexpr (op == Binary::subtract) return a - b;
  if constexpr (op == Binary::multiply) return a * b;
  if constexpr (op == Binary::divide) return a / b;
  if constexpr (op == Binary::equal) return a == b ? T{1} : T{0};
  if constexpr (op == Binary::less) return a < b ? T{1} : T{0};
  if constexpr (op == Binary::less_equal) return a <= b ? T{1} : T{0};
  if constexpr (op == Binary::maximum) return isnan(a) || a > b ? a : b;
  if constexpr (op == Binary::minimum) return isnan(a) || a < b ? a : b;
  if constexpr (op == Binary::pow) return pow(a, b);
}

// Computes four elements per thread. Each operand has the shape of the result (step 1) or is one element (step 0).
template <Binary op, class A, class B, class Y>
__global__ void flat_binary_kernel(const A* a, int step_a, const B* b, int step_b, Y* y, std::int64_t n) {
  using T = arithmetic<Y>;
  std::int64_t i = thread_number() * 4;
  if (i + 4 <= n) {
    Pack<A, 4> left;
    Pack<B, 4> right;
    if (step_a == 0)
      for (A& v : left.v) v = *a;
    else
      left = load_pack<A, 4>(a + i);
    if (step_b == 0)
      for (B& v : right.v) v = *b;
    else
      right = load_pack<B, 4>(b + i);
    Pack<Y, 4> out;
    for (int j = 0; j < 4; ++j)
      out.v[j] = static_cast<Y>(apply_binary<op>(static_cast<T>(left.v[j]), static_cast<T>(right.v[j])));
    store_pack(out, y + i);
  } else {
    for (; i < n; ++i)
      y[i] = static_cast<Y>(apply_binary<op>(static_cast<T>(a[i * step_a]), static_cast<T>(b[i * step_b])));
  }
}

template <Binary op, class A, class B, class Y>
__global__ void binary_kernel(const A* a, const B* b, Y* y, Index<2> index, std::int64_t n) {
  using T = arithmetic<Y>;
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const Offsets<2> at = index.at(i);
  y[i] = static_cast<Y>(apply_binary<op>(static_cast<T>(a[at.of[0]]), static_cast<T>(b[at.of[1]])));
}

template <class T>
__global__ void where_kernel(const std::uint8_t* mask, const T* a, const T* b, T* y, Index<3> index, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const Offsets<3> at = index.at(i);
  y[i] = mask[at.of[0]] ? a[at.of[1]] : b[at.of[2]];
}

template <class T>
__global__ void broadcast_kernel(const T* x, T* y, Index<1> index, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i] = x[index.at(i).of[0]];
}

constexpr std::int64_t packs(std::int64_t n, int width) { return (n + width - 1) / width; }

template <class A, class B, class Y>
void launch_binary(Binary op, const Array& a, const Array& b, const Out& y) {
  const Index<2> index(y.shape(), {&a.shape(), &b.shape()});
  const std::int64_t n = y.numel();
  const auto run = [&]<Binary which>() {
    if (index.flat())
      launch_for(packs(n, 4), flat_binary_kernel<which, A, B, Y>, elements<A>(a), index.step(0), elements<B>(b),
                 index.step(1), elements<Y>(y), n);
    else
      launch_for(n, binary_kernel<which, A, B, Y>, elements<A>(a), elements<B>(b), elements<Y>(y), index, n);
  };
  switch (op) {
    case Binary::add:
      return run.template operator()<Binary::add>();
    case Binary::subtract:
      return run.template operator()<Binary::subtract>();
    case Binary::multiply:
      return run.template operator()<Binary::multiply>();
    case Binary::divide:
      return run.template operator()<Binary::divide>();
    case Binary::equal:
      return run.template operator()<Binary::equal>();
    case Binary::less:
      return run.template operator()<Binary::less>();
    case Binary::less_equal:
      return run.template operator()<Binary::less_equal>();
    case Binary::maximum:
      return run.template operator()<Binary::maximum>();
    case Binary::minimum:
      return run.template operator()<Binary::minimum>();
    case Binary::pow:
      return run.template operator()<Binary::pow>();
  }
}

template <class T>
void launch_unary(Unary op, double parameter, const Array& x, const Out& y) {
  const auto run = [&]<Unary which>() {
    launch_for(packs(y.numel(), pack_size<T>), unary_kernel<which, T>, elements<T>(x), static_cast<T>(parameter),
               elements<T>(y), y.numel());
  };
  switch (op) {
    case Unary::exp:
      return run.template operator()<Unary::exp>();
    case Unary::log:
      return run.template operator()<Unary::log>();
    case Unary::tanh:
      return run.template operator()<Unary::tanh>();
    case Unary::erf:
      return run.template operator()<Unary::erf>();
    case Unary::sqrt:
      return run.template operator()<Unary::sqrt>();
    case Unary::rsqrt:
      return run.template operator()<Unary::rsqrt>();
    case Unary::relu:
      return run.template operator()<Unary::relu>();
    case Unary::step:
      return run.template operator()<Unary::step>();
    case Unary::abs:
      return run.template operator()<Unary::abs>();
    case Unary::sign:
      return run.template operator()<Unary::sign>();
    case Unary::log1p:
      return run.template operator()<Unary::log1p>();
    case Unary::sin:
      return run.template operator()<Unary::sin>();
    case Unary::cos:
      return run.template operator()<Unary::cos>();
    case Unary::expm1:
      return run.template operator()<Unary::expm1>();
    case Unary::floor:
      return run.template operator()<Unary::floor>();
    case Unary::round:
      return run.template operator()<Unary::round>();
    case Unary::sigmoid:
      return run.template operator()<Unary::sigmoid>();
    case Unary::pow:
      return run.template operator()<Unary::pow>();
    case Unary::multiply:
      return run.template operator()<Unary::multiply>();
    case Unary::add:
      return run.template operator()<Unary::add>();
  }
}

}  // namespace

void fill(double value, const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() {
    launch_for(packs(y.numel(), pack_size<T>), fill_kernel<T>, static_cast<T>(value), elements<T>(y), y.numel());
  });
}

void cast(const Array& x, const Out& y) {
  dispatch_any(x.dtype(), [&]<class From>() {
    dispatch_any(y.dtype(), [&]<class To>() {
      launch_for(packs(y.numel(), 4), cast_kernel<From, To>, elements<From>(x), elements<To>(y), y.numel());
    });
  });
}

void unary(Unary op, double parameter, const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "unary", [&]<class T>() { launch_unary<T>(op, parameter, x, y); });
}

void binary(Binary op, const Array& a, const Array& b, const Out& y) {
  const auto real = [](DType dtype, auto&& f) {
    return dtype == DType::bf16 ? f.template operator()<bfloat16>() : f.template operator()<float>();
  };
  if (y.dtype() == DType::f64 || a.dtype() == DType::f64) return launch_binary<double, double, double>(op, a, b, y);
  real(a.dtype(), [&]<class A>() {
    real(b.dtype(), [&]<class B>() { real(y.dtype(), [&]<class Y>() { launch_binary<A, B, Y>(op, a, b, y); }); });
  });
}

void where(const Array& mask, const Array& a, const Array& b, const Out& y) {
  const Index<3> index(y.shape(), {&mask.shape(), &a.shape(), &b.shape()});
  dispatch_any(y.dtype(), [&]<class T>() {
    launch_for(y.numel(), where_kernel<T>, elements<std::uint8_t>(mask), elements<T>(a), elements<T>(b), elements<T>(y),
               index, y.numel());
  });
}

void broadcast(const Array& x, const Out& y) {
  const Index<1> index(y.shape(), {&x.shape()});
  dispatch_any(y.dtype(), [&]<class T>() {
    launch_for(y.numel(), broadcast_kernel<T>, elements<T>(x), elements<T>(y), index, y.numel());
  });
}

}  // namespace plumb::cuda
