// softmax(scale q k^T) v, with DropKey before the softmax and dropout after it. The backward pass keeps q, k, v and two
// numbers for each row (its largest q.k and its sum of exponentials), but no N x M array. Higher derivatives use arrays
// of probabilities; the masks are drawn again instead of being kept.
#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/ops/attention_masks.h"
#include "autograd/ops/second.h"
#include "core/backend.h"
#include "core/drop_key.h"
#include "core/scope.h"

namespace plumb {

namespace detail {

AttentionCall make_call(const char* op, std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys,
                        std::int64_t head_dim, const Tensor& like, const AttentionMasking& o) {
  const std::uint32_t dropout = survivable_threshold(op, "dropout probability", o.dropout);
  check(queries < 65536 && keys < 524288, "[{}] expected fewer than 65536 queries and 524288 keys, got {} and {}", op,
        queries, keys);
  check(head_dim > 0, "[{}] expected a head width above 0, got {}", op, head_dim);
  const RandomState& random = random_state();
  const std::uint64_t key = random_key(random.seed, current_path() ? *current_path() : "");
  AttentionCall call{.batch = batch,
                     .heads = heads,
                     .queries = queries,
                     .keys = keys,
                     .head_dim = head_dim,
                     .scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(head_dim))),
                     .keep = {},
                     .causal = o.causal,
                     .drop_key = key_mask(o.drop_key, o.drop_shape, o.drop_window, o.drop_sharing, o.grid, keys, key),
                     .dropout = {dropout, key},
                     .empty = o.empty,
                     .step = random.step,
                     .first_sample = random.first_sample};
  if (call.drop_key.threshold || call.dropout.threshold) random_state_for(op);  // throws unless a RandomScope is open
  check(std::isfinite(call.scale) && call.scale >= 0,
        "[{}] expected a finite scale of at least 0 for the scores, got {}", op, call.scale);
  if (o.keep.defined()) {
    const Shape full{batch, heads, queries, keys};
    check(o.keep.dtype() == DType::u8 && broadcasts_to(o.keep.shape(), full),
          "[{}] expected a u8 keep mask that broadcasts to {}, got {} {}", op, full, enum_name(o.keep.dtype()),
          o.keep.shape());
    check(o.keep.device() == like.device(), "[{}] expected the keep mask on {}, got {}", op, enum_name(like.device()),
          enum_name(o.keep.device()));
    call.keep = broadcast_to(o.keep, full).array();
  }
  return call;
}

AttentionCall make_call(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionMasking& options) {
  check_operands(op, q, k);
  check_operands(op, q, v);
  check(q.shape().rank() == 4 && k.shape() == v.shape() && k.shape().rank() == 4 &&
            q.shape().with(2, 0) == k.shape().with(2, 0) && k.dim(2) > 0,
        "[{}] expected q [B, H, N, E] and k, v [B, H, M, E], got {}, {} and {}", op, q.shape(), k.shape(), v.shape());
  return make_call(op, q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3), q, options);
}

Masks draw_masks(const AttentionCall& call, const Tensor& like) {
  const auto rows = static_cast<std::size_t>(call.batch * call.heads * call.queries),
             M = static_cast<std::size_t>(call.keys);
  std::vector<std::uint8_t> keep(rows * M, 1), uniform_rows(rows, 0);
  std::vector<std::uint8_t> dropped(M, 0);
  std::vector<double> multiplier(call.dropout.threshold ? rows * M : 0);
  const Array mask = on_host(call.keep);
  const double scaled_up = 1 / (1 - call.dropout.threshold / 65536.0);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto query = static_cast<std::uint32_t>(row % static_cast<std::size_t>(call.queries));
    const auto sample_head = static_cast<std::uint32_t>(row / static_cast<std::size_t>(call.queries)) +
                             call.first_sample * static_cast<std::uint32_t>(call.heads);
    const std::int64_t last = call.last_key(query);
    const auto allowed = [&](std::size_t j) {
      return static_cast<std::int64_t>(j) <= last && (!mask.defined() || mask.data<std::uint8_t>()[row * M + j] != 0);
    };
    if (call.drop_key.threshold)
      drop_keys(call.drop_key, call.step, sample_head / call.heads, call.heads, sample_head % call.heads, query,
                dropped);
    for (std::size_t first = 0; call.dropout.threshold && first < M; first += 8) {
      const Draw draw = attention_draw(call.dropout.random_key, call.step, Purpose::dropout, sample_head, query,
                                       static_cast<std::uint32_t>(first / 8));
      for (std::size_t j = first; j < std::min(first + 8, M); ++j)
        multiplier[row * M + j] = draw16(draw, static_cast<int>(j % 8)) < call.dropout.threshold ? 0 : scaled_up;
    }
    bool allowed_any = false, kept_any = false;
    for (std::size_t j = 0; j < M; ++j) {
      const bool kept = allowed(j) && !dropped[j];
      keep[row * M + j] = kept;
      allowed_any |= allowed(j);
      kept_any |= kept;
    }
    if (kept_any) continue;
    uniform_rows[row] = call.empty == EmptyRow::paper && allowed_any;
    for (std::size_t j = 0; j < M; ++j) keep[row * M + j] = call.empty == EmptyRow::keep_all && allowed(j);
  }
  const Shape shape{call.batch, call.heads, call.queries, call.keys};
  return {Tensor(array_from(keep, shape, like.device())),
          call.dropout.threshold ? tensor(multiplier, shape, {like.dtype(), like.device()}) : Tensor(),
          Tensor(array_from(uniform_rows, shape.with(-1, 1), like.device()))};
}

}  // namespace detail

namespace {

using detail::make_call;

// The backward pass, written in ops that are recorded. With P = softmax(scale q k^T) under the call's masks and A =
// dropped(P): dv = A^T dy, dA = dy v^T, dS = P (dP - sum(P dP)), dq = scale dS k, dk = scale dS^T q. The result of the
// forward pass is not needed.
Tensors recorded_backward(const AttentionCall& call, const Tensor& keep, const Tensor& dy, const Tensor& q,
                          const Tensor& k, const Tensor& v) {
  const Tensor scaled = q * call.scale, p = detail::masked_softmax(call, keep, matmul(scaled, k, false, true));
  const Tensor ds = detail::masked_softmax_backward(call, detail::dropped(call, matmul(dy, v, false, true)), p);
  return {matmul(ds, k) * call.scale, matmul(ds, scaled, true), matmul(detail::dropped(call, p), dy, true)};
}

// The layout of heads in an array [B, H, T, E], and of part `which` of a packed array [B, T, parts * D]. A
// is Array, or Out for results.
template <class A>
HeadsOf<A> heads_of(const A& a) {
  return {a, 0, a.dim(1) * a.dim(2) * a.dim(3), a.dim(2) * a.dim(3), a.dim(3)};
}
template <class A>
HeadsOf<A> packed(const A& a, std::int64_t which, std::int64_t parts, std::int64_t head_dim) {
  const std::int64_t D = a.dim(2) / parts;
  return {a, which * D, a.dim(1) * a.dim(2), head_dim, a.dim(2)};
}

// Splits [B, T, parts D] into `parts` tensors [B, H, T, E]; repacked() is the inverse.
Tensors unpacked(const Tensor& x, std::int64_t parts, std::int64_t heads) {
  const std::int64_t B = x.dim(0), T = x.dim(1), E = x.dim(2) / (parts * heads);
  const Tensor split = permute(reshape(x, {B, T, parts, heads, E}), {2, 0, 3, 1, 4});
  return unbind(split);
}
Tensor repacked(const Tensors& parts) {
  const Shape& s = parts[0].shape();
  return reshape(permute(stack(parts), {1, 3, 0, 2, 4}),
                 Shape{s[0], s[2], static_cast<std::int64_t>(parts.size()) * s[1] * s[3]});
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMasking& options) {
  constexpr const char* op = "attention";
  const AttentionCall call = make_call(op, q, k, v, options);
  Array y = empty_like(q.array()), sums = empty_like(y, q.shape().with(-1, 2));
  kernels(y).attention_forward(call, heads_of(q.array()), heads_of(k.array()), heads_of(v.array()), heads_of(Out(y)),
                               sums);
  return record_fused(
      op, y, {q, k, v},
      [q = Saved(q), k = Saved(k), v = Saved(v), keep = Saved(options.keep), call, sums](const Tensor& dy) {
        keep.get();  // throws if the mask was changed; the call may share the mask's buffer
        Array dq = empty_like(q.array()), dk = empty_like(k.array()), dv = empty_like(v.array());
        kernels(dq).attention_backward(call, heads_of(dy.array()), heads_of(q.array()), heads_of(k.array()),
                                       heads_of(v.array()), sums, heads_of(Out(dq)), heads_of(Out(dk)),
                                       heads_of(Out(dv)));
        return Tensors{Tensor(dq), Tensor(dk), Tensor(dv)};
      },
      [q = Saved(q), k = Saved(k), v = Saved(v), keep = Saved(options.keep), call](const Tensor& dy) {
        return recorded_backward(call, keep, dy, q, k, v);
      });
}

namespace {

// The place of q, k or v among the inputs of an op: part `index` of `parts` equal parts of the last axis of an input.
struct Part {
  std::size_t input;
  std::int64_t index, parts;
};
using Parts = std::array<Part, 3>;  // of q, k and v

// attention() for q, k and v [B, T, D] that are parts of the inputs [B, T, parts D]. The result is [B, N, D].
Tensor attend(const char* op, const Tensors& inputs, const Parts& where, std::int64_t heads,
              const AttentionMasking& options) {
  const auto& [q, k, v] = where;
  const Tensor& like = inputs[q.input];
  const std::int64_t B = like.dim(0), N = like.dim(1), M = inputs[k.input].dim(1), D = like.dim(2) / q.parts,
                     E = D / heads;
  const AttentionCall call = make_call(op, B, heads, N, M, E, like, options);
  const bool bf16 = like.dtype() == DType::bf16;
  Out y = empty_like(like.array(), {B, N, D}),
      sums = Array({B, heads, N, 2}, bf16 ? DType::f32 : like.dtype(), like.device());
  const auto view = [E](const auto& arrays, const Part& p) { return packed(arrays[p.input], p.index, p.parts, E); };
  std::vector<Array> arrays;
  for (const Tensor& x : inputs) arrays.push_back(x.array());
  kernels(y).attention_forward(call, view(arrays, q), view(arrays, k), view(arrays, v), packed(y, 0, 1, E), sums);
  std::vector<Saved> saved;
  for (const Tensor& x : inputs) saved.emplace_back(x);
  return record_fused(
      op, y, inputs,
      [saved, keep = Saved(options.keep), call, sums, where, view, E](const Tensor& dy) {
        keep.get();
        std::vector<Array> x;
        std::vector<Out> dx;
        for (const Saved& s : saved) x.push_back(s.array()), dx.push_back(empty_like(x.back()));
        kernels(dx.front())
            .attention_backward(call, packed(dy.array(), 0, 1, E), view(x, where[0]), view(x, where[1]),
                                view(x, where[2]), sums, view(dx, where[0]), view(dx, where[1]), view(dx, where[2]));
        Tensors gradients;
        for (const Out& d : dx) gradients.emplace_back(d);
        return gradients;
      },
      [saved, keep = Saved(options.keep), call, heads, bf16, where](const Tensor& dy) {
        const auto wide = [&](const Tensor& x) { return bf16 ? cast(x, DType::f32) : x; };
        std::vector<Tensors> parts;  // of each input, [B, H, T, E]
        for (std::size_t i = 0; i < saved.size(); ++i) {
          const auto of_input = std::ranges::find(where, i, &Part::input);
          parts.push_back(unpacked(wide(saved[i]), of_input->parts, heads));
        }
        const auto part = [&](const Part& p) { return parts[p.input][static_cast<std::size_t>(p.index)]; };
        const Tensors d = recorded_backward(call, keep, unpacked(wide(dy), 1, heads)[0], part(where[0]), part(where[1]),
                                            part(where[2]));
        for (std::size_t i = 0; i < 3; ++i) parts[where[i].input][static_cast<std::size_t>(where[i].index)] = d[i];
        Tensors gradients;
        for (const Tensors& of_input : parts)
          gradients.push_back(bf16 ? cast(repacked(of_input), DType::bf16) : repacked(of_input));
        return gradients;
      });
}

void check_packed(const char* op, const Tensor& x) {
  if (!x.defined() || x.dtype() != DType::bf16) detail::check_float(op, x);
}

}  // namespace

Tensor attention_qkv(const Tensor& qkv, std::int64_t heads, const AttentionMasking& options) {
  constexpr const char* op = "attention_qkv";
  check_packed(op, qkv);
  check(qkv.shape().rank() == 3 && heads > 0 && qkv.dim(2) % 3 == 0 && qkv.dim(2) / 3 % heads == 0 && qkv.dim(1) > 0,
        "[{}] expected qkv [B, T, 3 D] with D a multiple of {} heads, got {}", op, heads, qkv.shape());
  return attend(op, {qkv}, {{{0, 0, 3}, {0, 1, 3}, {0, 2, 3}}}, heads, options);
}

Tensor attention_q_kv(const Tensor& q, const Tensor& kv, std::int64_t heads, const AttentionMasking& options) {
  constexpr const char* op = "attention_q_kv";
  check_packed(op, q);
  detail::check_alike(op, q, kv);
  check(q.shape().rank() == 3 && kv.shape().rank() == 3 && heads > 0 && q.dim(2) % heads == 0 && q.dim(1) > 0 &&
            kv.dim(1) > 0 && kv.dim(0) == q.dim(0) && kv.dim(2) == 2 * q.dim(2),
        "[{}] expected q [B, N, D] and kv [B, M, 2 D] with D a multiple of {} heads, got {} and {}", op, heads,
        q.shape(), kv.shape());
  return attend(op, {q, kv}, {{{0, 0, 1}, {1, 0, 2}, {1, 1, 2}}}, heads, options);
}

Tensor detail::kept_softmax(const Tensor& scores, const Tensor& keep) {
  if (scores.numel() == 0) return scores;  // max() throws if there are no rows
  const Defaults like{scores.dtype(), scores.device()};
  const Tensor lowest = full({1}, -1e30, like), zero = full({1}, 0, like), one = full({1}, 1, like);
  const Tensor top = max(where(keep, scores.detach(), lowest), {-1}, true);
  const Tensor e = where(keep, exp(where(keep, scores - top, zero)), zero);
  const Tensor total = sum(e, {-1}, true);
  Array alive(total.shape(), DType::u8, scores.device()), positive = empty_like(total.array());
  kernels(alive).unary(Unary::step, 0, total.array(), positive);
  kernels(alive).cast(positive, alive);
  return e / where(Tensor(alive), total, one);
}

Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& keep,
                          const Tensor& multiplier) {
  Tensor p = detail::kept_softmax(matmul(q, k, false, true) * scale, keep);
  if (multiplier.defined()) p = p * multiplier;
  return matmul(p, v);
}

}  // namespace plumb
