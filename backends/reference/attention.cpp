// Attention with DropKey (Li et al., CVPR 2023) and attention dropout, one query row at a time.
//   S = scale q k^T over the kept keys, P = softmax(S), P' = m P / (1 - p) where dropout is on, out = P' v.
//   dP = m (dout v^T) / (1 - p), dS = P (dP - sum_j P_j dP_j); dq = scale dS k, dk = scale dS^T q, dv = P'^T dout.
// A row that lost every key: see EmptyRow. DropKey's survivors are not rescaled: the softmax does it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

template <class T>
const T* row_of(const Heads& h, std::int64_t b, std::int64_t head, std::int64_t token) {
  return h.array.data<T>() + h.offset + b * h.batch + head * h.head + token * h.token;
}
template <class T>
T* mutable_row_of(const Heads& h, std::int64_t b, std::int64_t head, std::int64_t token) {
  return const_cast<T*>(row_of<T>(h, b, head, token));
}

struct Row {
  std::vector<double> p;           // softmax over the kept keys
  std::vector<double> multiplier;  // attention dropout: 0 or 1 / (1 - p); 1 without it
  bool differentiable = true;      // false: the scores of this row are constants
  double top = 0, sum = 1;         // largest q.k, and the sum of exponentials relative to it
};

template <class T>
Row attend(const AttentionCall& call, const Heads& q, const Heads& k, std::int64_t b, std::int64_t h, std::int64_t n) {
  const auto M = static_cast<std::size_t>(call.keys);
  const auto sample_head = static_cast<std::uint32_t>((call.first_sample + b) * call.heads + h);
  std::vector<bool> allowed(M, true), kept(M);
  if (call.keep.defined())
    for (std::size_t j = 0; j < M; ++j)
      allowed[j] = call.keep.data<std::uint8_t>()[((b * call.heads + h) * call.queries + n) * call.keys + static_cast<std::int64_t>(j)] != 0;
  std::vector<std::uint8_t> dropped(M, 0);
  if (call.drop_key.threshold) drop_keys(call.drop_key, call.step, call.first_sample + b, call.heads, h, n, dropped);
  for (std::size_t j = 0; j < M; ++j) kept[j] = allowed[j] && !dropped[j];

  Row row{.p = std::vector<double>(M, 0.0), .multiplier = std::vector<double>(M, 1.0)};
  if (call.dropout.threshold)
    for (std::size_t j = 0; j < M; ++j) {
      const Draw d = attention_draw(call.dropout.key, call.step, Purpose::dropout, sample_head, static_cast<std::uint32_t>(n),
                                    static_cast<std::uint32_t>(j / 8));
      row.multiplier[j] = draw16(d, static_cast<int>(j % 8)) < call.dropout.threshold ? 0 : 1 / (1 - call.dropout.threshold / 65536.0);
    }

  if (std::ranges::none_of(kept, std::identity{})) {
    if (call.empty != EmptyRow::keep_all) {
      row.differentiable = false;
      if (call.empty == EmptyRow::paper) std::ranges::fill(row.p, 1.0 / static_cast<double>(M));
      return row;
    }
    kept = std::ranges::none_of(allowed, std::identity{}) ? std::vector<bool>(M, true) : allowed;
  }

  double top = -std::numeric_limits<double>::infinity(), sum = 0;  // of scaled scores
  for (std::size_t j = 0; j < M; ++j) {
    if (!kept[j]) continue;
    for (std::int64_t i = 0; i < call.head_dim; ++i)
      row.p[j] += static_cast<double>(row_of<T>(q, b, h, n)[i]) * row_of<T>(k, b, h, static_cast<std::int64_t>(j))[i];
    row.p[j] *= call.scale;
    top = std::max(top, row.p[j]);
  }
  for (std::size_t j = 0; j < M; ++j) sum += kept[j] ? std::exp(row.p[j] - top) : 0;
  for (std::size_t j = 0; j < M; ++j) row.p[j] = kept[j] ? std::exp(row.p[j] - top) / sum : 0;
  row.top = call.scale > 0 ? top / call.scale : 0;
  row.sum = sum;
  return row;
}

template <class F>
void each_row(const AttentionCall& call, F&& f) {
  for (std::int64_t b = 0; b < call.batch; ++b)
    for (std::int64_t h = 0; h < call.heads; ++h)
      for (std::int64_t n = 0; n < call.queries; ++n) f(b, h, n);
}

}  // namespace

void attention_forward(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const Heads& out, const Array& sums) {
  dispatch_float(out.array.dtype(), "attention", [&]<class T>() {
    each_row(call, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
      const Row row = attend<T>(call, q, k, b, h, n);
      T* const kept = sums.mutable_data<T>() + 2 * ((b * call.heads + h) * call.queries + n);
      kept[0] = static_cast<T>(row.top);
      kept[1] = static_cast<T>(row.sum);
      for (std::int64_t i = 0; i < call.head_dim; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < call.keys; ++j)
          sum += row.p[static_cast<std::size_t>(j)] * row.multiplier[static_cast<std::size_t>(j)] * row_of<T>(v, b, h, j)[i];
        mutable_row_of<T>(out, b, h, n)[i] = static_cast<T>(sum);
      }
    });
  });
}

void attention_backward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v, const Array&, const Heads& dq,
                        const Heads& dk, const Heads& dv) {
  dispatch_float(dout.array.dtype(), "attention", [&]<class T>() {
    const auto hd = static_cast<std::size_t>(call.head_dim), M = static_cast<std::size_t>(call.keys);
    for (std::int64_t b = 0; b < call.batch; ++b)
      for (std::int64_t h = 0; h < call.heads; ++h) {
        std::vector<double> sum_dk(M * hd), sum_dv(M * hd);
        for (std::int64_t n = 0; n < call.queries; ++n) {
          const Row row = attend<T>(call, q, k, b, h, n);
          const T *g = row_of<T>(dout, b, h, n), *qn = row_of<T>(q, b, h, n);
          std::vector<double> dp(M), sum_dq(hd);
          double dot = 0;
          for (std::size_t j = 0; j < M; ++j) {
            for (std::size_t i = 0; i < hd; ++i) {
              dp[j] += row.multiplier[j] * g[i] * row_of<T>(v, b, h, static_cast<std::int64_t>(j))[i];
              sum_dv[j * hd + i] += row.p[j] * row.multiplier[j] * g[i];
            }
            dot += row.p[j] * dp[j];
          }
          for (std::size_t j = 0; j < M; ++j) {
            const double ds = row.differentiable ? call.scale * row.p[j] * (dp[j] - dot) : 0;
            for (std::size_t i = 0; i < hd; ++i) {
              sum_dq[i] += ds * row_of<T>(k, b, h, static_cast<std::int64_t>(j))[i];
              sum_dk[j * hd + i] += ds * qn[i];
            }
          }
          for (std::size_t i = 0; i < hd; ++i) mutable_row_of<T>(dq, b, h, n)[i] = static_cast<T>(sum_dq[i]);
        }
        for (std::size_t j = 0; j < M; ++j)
          for (std::size_t i = 0; i < hd; ++i) {
            mutable_row_of<T>(dk, b, h, static_cast<std::int64_t>(j))[i] = static_cast<T>(sum_dk[j * hd + i]);
            mutable_row_of<T>(dv, b, h, static_cast<std::int64_t>(j))[i] = static_cast<T>(sum_dv[j * hd + i]);
          }
      }
  });
}

}  // namespace plumb::reference
