// Attention with DropKey (Li et al., CVPR 2023) and attention dropout, one query row at a time:
//   S = scale q k^T over the kept keys, P = softmax(S), P' = m P / (1 - p) with attention dropout, out = P' v.
//   dP = m (dout v^T) / (1 - p), dS = P (dP - sum_j P_j dP_j); dq = scale dS k, dk = scale dS^T q, dv = P'^T dout.
// m is 0 for a dropped probability and 1 otherwise. For a row without a kept key, see EmptyRow; a row without an
// allowed key is 0. DropKey does not rescale the kept keys, because the softmax normalizes them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// One head of one sample. head(token, i) is element i of a token. A is Array, or Out if the head is written.
template <class A>
class Head {
 public:
  Head(const HeadsOf<A>& h, std::int64_t b, std::int64_t head)
      : values_(h.array), first_(h.offset + b * h.batch + head * h.head), token_(h.token) {}
  double operator()(std::size_t token, std::size_t i) const { return values_[at(token, i)]; }
  void set(std::size_t token, std::size_t i, double value) const { values_.set(at(token, i), value); }

 private:
  std::int64_t at(std::size_t token, std::size_t i) const {
    return first_ + static_cast<std::int64_t>(token) * token_ + static_cast<std::int64_t>(i);
  }

  std::conditional_t<std::is_same_v<A, Out>, OutValues, Values> values_;
  std::int64_t first_, token_;
};

// The keys that a query may attend to.
struct RowMask {
  std::vector<bool> kept;          // if `kept` has no elements, the probabilities of this row are `constant`
  std::vector<double> multiplier;  // attention dropout: 0 or 1 / (1 - p); without attention dropout: 1
  std::vector<double> constant;
  bool attends() const { return !kept.empty(); }
};

// Returns the mask of query n of head h of sample b.
RowMask mask_of(const AttentionCall& call, std::int64_t b, std::int64_t h, std::int64_t n) {
  const auto M = static_cast<std::size_t>(call.keys);
  const auto sample_head = static_cast<std::uint32_t>((call.first_sample + b) * call.heads + h);
  std::vector<bool> allowed(M), kept(M);
  for (std::size_t j = 0; j < M; ++j) allowed[j] = static_cast<std::int64_t>(j) <= call.last_key(n);
  if (call.keep.defined())
    for (std::size_t j = 0; j < M; ++j)
      if (!call.keep.data<std::uint8_t>()[((b * call.heads + h) * call.queries + n) * call.keys +
                                          static_cast<std::int64_t>(j)])
        allowed[j] = false;
  std::vector<std::uint8_t> dropped(M, 0);
  if (call.drop_key.threshold) drop_keys(call.drop_key, call.step, call.first_sample + b, call.heads, h, n, dropped);
  for (std::size_t j = 0; j < M; ++j) kept[j] = allowed[j] && !dropped[j];

  RowMask mask{.kept = {}, .multiplier = std::vector<double>(M, 1.0), .constant = std::vector<double>(M, 0.0)};
  if (call.dropout.threshold)
    for (std::size_t j = 0; j < M; ++j) {
      const Draw d = attention_draw(call.dropout.random_key, call.step, Purpose::dropout, sample_head,
                                    static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(j / 8));
      mask.multiplier[j] =
          draw16(d, static_cast<int>(j % 8)) < call.dropout.threshold ? 0 : 1 / (1 - call.dropout.threshold / 65536.0);
    }
  if (std::ranges::none_of(kept, std::identity{})) {
    const auto count = static_cast<double>(std::ranges::count(allowed, true));
    if (call.empty == EmptyRow::paper)
      for (std::size_t j = 0; j < M; ++j) mask.constant[j] = allowed[j] ? 1 / count : 0;
    if (call.empty != EmptyRow::keep_all || count == 0) return mask;
    kept = allowed;
  }
  mask.kept = std::move(kept);
  return mask;
}

// Turns scores into probabilities over the kept keys. Returns the largest score, and the sum of the exponentials
// relative to the largest score.
std::pair<double, double> softmax(const RowMask& mask, std::vector<double>& p) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j)
    if (mask.kept[j]) top = std::max(top, p[j]);
  for (std::size_t j = 0; j < p.size(); ++j) sum += mask.kept[j] ? std::exp(p[j] - top) : 0;
  for (std::size_t j = 0; j < p.size(); ++j) p[j] = mask.kept[j] ? std::exp(p[j] - top) / sum : 0;
  return {top, sum};
}

struct Row {
  std::vector<double> p, multiplier;
  bool differentiable = true;  // false if the probabilities of this row are constant
  double top = 0, sum = 1;     // top: largest q.k; sum: sum of the exponentials relative to the largest score
};

// Returns the probabilities of query n of head h of sample b, before attention dropout.
Row attend(const AttentionCall& call, const Head<Array>& q, const Head<Array>& k, std::int64_t b, std::int64_t h,
           std::int64_t n) {
  const auto M = static_cast<std::size_t>(call.keys), hd = static_cast<std::size_t>(call.head_dim),
             query = static_cast<std::size_t>(n);
  const RowMask mask = mask_of(call, b, h, n);
  if (!mask.attends()) return {.p = mask.constant, .multiplier = mask.multiplier, .differentiable = false};
  Row row{.p = std::vector<double>(M, 0.0), .multiplier = mask.multiplier};
  for (std::size_t j = 0; j < M; ++j) {
    if (!mask.kept[j]) continue;
    for (std::size_t i = 0; i < hd; ++i) row.p[j] += q(query, i) * k(j, i);
    row.p[j] *= call.scale;
  }
  const auto [top, sum] = softmax(mask, row.p);
  row.top = call.scale > 0 ? top / call.scale : 0;
  row.sum = sum;
  return row;
}

// Calls f(mask of the row, index of the row's first element) for each row of [B, H, N, M].
template <class F>
void each_row(const AttentionCall& call, F&& f) {
  for (std::int64_t row = 0; row < call.batch * call.heads * call.queries; ++row)
    f(mask_of(call, row / call.queries / call.heads, row / call.queries % call.heads, row % call.queries),
      row * call.keys);
}

}  // namespace

void attention_forward(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const HeadsOut& out,
                       const Out& sums) {
  const auto hd = static_cast<std::size_t>(call.head_dim), M = static_cast<std::size_t>(call.keys);
  const OutValues kept(sums);
  for (std::int64_t b = 0; b < call.batch; ++b)
    for (std::int64_t h = 0; h < call.heads; ++h) {
      const Head queries(q, b, h), keys(k, b, h), values(v, b, h);
      const Head result(out, b, h);
      for (std::int64_t n = 0; n < call.queries; ++n) {
        const Row row = attend(call, queries, keys, b, h, n);
        const std::int64_t at = 2 * ((b * call.heads + h) * call.queries + n);
        kept.set(at, row.top);
        kept.set(at + 1, row.sum);
        for (std::size_t i = 0; i < hd; ++i) {
          double sum = 0;
          for (std::size_t j = 0; j < M; ++j) sum += row.p[j] * row.multiplier[j] * values(j, i);
          result.set(static_cast<std::size_t>(n), i, sum);
        }
      }
    }
}

void attention_backward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v,
                        const Array&, const HeadsOut& dq, const HeadsOut& dk, const HeadsOut& dv) {
  const auto hd = static_cast<std::size_t>(call.head_dim), M = static_cast<std::size_t>(call.keys);
  for (std::int64_t b = 0; b < call.batch; ++b)
    for (std::int64_t h = 0; h < call.heads; ++h) {
      const Head gradients(dout, b, h), queries(q, b, h), keys(k, b, h), values(v, b, h);
      const Head q_result(dq, b, h), k_result(dk, b, h), v_result(dv, b, h);
      std::vector<double> sum_dk(M * hd), sum_dv(M * hd);
      for (std::size_t n = 0; n < static_cast<std::size_t>(call.queries); ++n) {
        const Row row = attend(call, queries, keys, b, h, static_cast<std::int64_t>(n));
        std::vector<double> dp(M), sum_dq(hd);
        double dot = 0;
        for (std::size_t j = 0; j < M; ++j) {
          for (std::size_t i = 0; i < hd; ++i) {
            dp[j] += row.multiplier[j] * gradients(n, i) * values(j, i);
            sum_dv[j * hd + i] += row.p[j] * row.multiplier[j] * gradients(n, i);
          }
          dot += row.p[j] * dp[j];
        }
        for (std::size_t j = 0; j < M; ++j) {
          const double ds = row.differentiable ? call.scale * row.p[j] * (dp[j] - dot) : 0;
          for (std::size_t i = 0; i < hd; ++i) {
            sum_dq[i] += ds * keys(j, i);
            sum_dk[j * hd + i] += ds * queries(n, i);
          }
        }
        for (std::size_t i = 0; i < hd; ++i) q_result.set(n, i, sum_dq[i]);
      }
      for (std::size_t j = 0; j < M; ++j)
        for (std::size_t i = 0; i < hd; ++i) {
          k_result.set(j, i, sum_dk[j * hd + i]);
          v_result.set(j, i, sum_dv[j * hd + i]);
        }
    }
}

void attention_softmax_forward(const AttentionCall& call, const Array& x, const Out& y) {
  const Values scores(x);
  const OutValues results(y);
  each_row(call, [&](const RowMask& mask, std::int64_t first) {
    std::vector<double> p = mask.constant;
    for (std::size_t j = 0; mask.attends() && j < p.size(); ++j) p[j] = scores[first + static_cast<std::int64_t>(j)];
    if (mask.attends()) softmax(mask, p);
    for (std::size_t j = 0; j < p.size(); ++j) results.set(first + static_cast<std::int64_t>(j), p[j]);
  });
}

void attention_softmax_backward(const AttentionCall& call, const Array& dy, const Array& y, const Out& dx) {
  const Values gradients(dy), p(y);
  const OutValues results(dx);
  each_row(call, [&](const RowMask& mask, std::int64_t first) {
    double dot = 0;
    for (std::int64_t j = first; j < first + call.keys; ++j) dot += p[j] * gradients[j];
    for (std::int64_t j = first; j < first + call.keys; ++j)
      results.set(j, mask.attends() ? p[j] * (gradients[j] - dot) : 0);
  });
}

void attention_dropout(const AttentionCall& call, const Array& x, const Out& y) {
  const Values values(x);
  const OutValues results(y);
  each_row(call, [&](const RowMask& mask, std::int64_t first) {
    for (std::int64_t j = 0; j < call.keys; ++j)
      results.set(first + j, mask.multiplier[static_cast<std::size_t>(j)] * values[first + j]);
  });
}

}  // namespace plumb::reference
