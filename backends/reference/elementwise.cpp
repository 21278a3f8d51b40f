// Elementwise kernels and reductions. The kernels visit one element at a time and compute indices by division.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// Returns an index into an array of shape `from` that is broadcast to `to`. The index is that of the element for flat
// index i of `to`.
std::int64_t broadcast_index(std::int64_t i, const Shape& to, const Shape& from) {
  std::int64_t index = 0, stride = 1;
  for (int axis = 1; axis <= to.rank(); ++axis) {
    const std::int64_t coordinate = i % to[-axis];
    i /= to[-axis];
    if (axis > from.rank()) continue;
    if (from[-axis] != 1) index += coordinate * stride;
    stride *= from[-axis];
  }
  return index;
}

double apply(Unary op, double p, double x) {
  switch (op) {
    case Unary::exp:
      return std::exp(x);
    case Unary::log:
      return std::log(x);
    case Unary::tanh:
      return std::tanh(x);
    case Unary::erf:
      return std::erf(x);
    case Unary::sqrt:
      return std::sqrt(x);
    case Unary::rsqrt:
      return 1 / std::sqrt(x);
    case Unary::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Unary::step:
      return x > 0 ? 1 : 0;
    case Unary::abs:
      return std::abs(x);
    case Unary::sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case Unary::log1p:
      return std::log1p(x);
    case Unary::sin:
      return std::sin(x);
    case Unary::cos:
      return std::cos(x);
    case Unary::expm1:
      return std::expm1(x);
    case Unary::floor:
      return std::floor(x);
    case Unary::round:
      return std::nearbyint(x);
    case Unary::sigmoid: {
      const double e = std::exp(-std::abs(x));  // e is at most 1, so nothing overflows
      return (x < 0 ? e : 1) / (1 + e);
    }
    case Unary::pow:
      return std::pow(x, p);
    case Unary::multiply:
      return x * p;
    case Unary::add:
      return x + p;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double apply(Binary op, double a, double b) {
  switch (op) {
    case Binary::add:
      return a + b;
    case Binary::subtract:
      return a - b;
    case Binary::multiply:
      return a * b;
    case Binary::divide:
      return a / b;
    case Binary::equal:
      return a == b ? 1 : 0;
    case Binary::less:
      return a < b ? 1 : 0;
    case Binary::less_equal:
      return a <= b ? 1 : 0;
    case Binary::maximum:
      return std::isnan(a) || a > b ? a : b;
    case Binary::minimum:
      return std::isnan(a) || a < b ? a : b;
    case Binary::pow:
      return std::pow(a, b);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void fill(double value, const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() { std::fill_n(y.mutable_data<T>(), y.numel(), static_cast<T>(value)); });
}

void cast(const Array& x, const Out& y) {
  dispatch_any(x.dtype(), [&]<class From>() {
    dispatch_any(y.dtype(), [&]<class To>() {
      std::transform(x.data<From>(), x.data<From>() + x.numel(), y.mutable_data<To>(),
                     [](From v) { return static_cast<To>(v); });
    });
  });
}

void unary(Unary op, double parameter, const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "unary", [&]<class T>() {
    std::transform(x.data<T>(), x.data<T>() + x.numel(), y.mutable_data<T>(),
                   [&](T v) { return static_cast<T>(apply(op, parameter, v)); });
  });
}

void binary(Binary op, const Array& a, const Array& b, const Out& y) {
  const Values left(a), right(b);
  const OutValues result(y);
  for (std::int64_t i = 0; i < y.numel(); ++i)
    result.set(
        i, apply(op, left[broadcast_index(i, y.shape(), a.shape())], right[broadcast_index(i, y.shape(), b.shape())]));
}

void where(const Array& mask, const Array& a, const Array& b, const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const Array& from = mask.data<std::uint8_t>()[broadcast_index(i, y.shape(), mask.shape())] ? a : b;
      y.mutable_data<T>()[i] = from.data<T>()[broadcast_index(i, y.shape(), from.shape())];
    }
  });
}

void broadcast(const Array& x, const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i)
      y.mutable_data<T>()[i] = x.data<T>()[broadcast_index(i, y.shape(), x.shape())];
  });
}

void reduce(Reduce op, const Array& x, const Out& y) {
  const Values from(x);
  const OutValues to(y);
  const double start = op == Reduce::sum ? 0 : -std::numeric_limits<double>::infinity();
  std::vector<double> result(static_cast<std::size_t>(y.numel()), start);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    double& r = result[static_cast<std::size_t>(broadcast_index(i, x.shape(), y.shape()))];
    const double v = from[i];
    r = op == Reduce::sum ? r + v : (std::isnan(v) || v > r ? v : r);
  }
  for (std::int64_t i = 0; i < y.numel(); ++i) to.set(i, result[static_cast<std::size_t>(i)]);
}

}  // namespace plumb::reference
