// The keys that the keep mask and causal attention allow, under every rule for empty rows of DropKey: no output and no
// gradient depends on another key, and a query without an allowed key gives 0.
#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/ops/attention_masks.h"
#include "core/backend.h"
#include "core/drop_key.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/emulated_amx.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr std::int64_t samples_of_case = 2, heads_of_case = 2, width_of_case = 4;
enum class KeyMasks { none, padding, random };
enum class Form { separate, packed, talking };  // the ops attention, attention_q_kv and attention_talking

struct AllowedCase {
  EmptyRow empty;
  bool causal;
  KeyMasks masks;
  std::int64_t queries, keys;
  double drop_key, dropout;
};

// Calls f(case) for all combinations.
template <class F>
void each_case(const std::vector<std::pair<std::int64_t, std::int64_t>>& extents, F&& f) {
  const RandomScope random({.seed = 3, .step = 5, .first_sample = 7});
  for (const EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper})
    for (const bool causal : {false, true})
      for (const KeyMasks masks : {KeyMasks::none, KeyMasks::padding, KeyMasks::random})
        for (const auto& [queries, keys] : extents)
          for (const double drop_key : {0.0, 0.6, 1.0})
            for (const double dropout : {0.0, 0.3}) {
              CAPTURE(enum_name(empty), causal, static_cast<int>(masks), queries, keys, drop_key, dropout);
              f(AllowedCase{empty, causal, masks, queries, keys, drop_key, dropout});
            }
}

// The keep mask [B, H, queries, keys]. Padding: sample 0 has two keys less, sample 1 only padding. Random:
// query 0 has no key.
std::vector<std::uint8_t> kept_by_mask(const AllowedCase& c) {
  std::vector<std::uint8_t> keep;
  for (std::int64_t i = 0; i < samples_of_case * heads_of_case * c.queries * c.keys; ++i) {
    const std::int64_t key = i % c.keys, query = i / c.keys % c.queries,
                       sample = i / (c.keys * c.queries * heads_of_case);
    keep.push_back(c.masks == KeyMasks::none      ? 1
                   : c.masks == KeyMasks::padding ? sample == 0 && key + 2 < c.keys
                                                  : query > 0 && i * 7 % 5 < 3);
  }
  return keep;
}

// 1 for each allowed key, [B, H, queries, keys].
std::vector<double> allowed_keys(const AllowedCase& c) {
  const std::vector<std::uint8_t> keep = kept_by_mask(c);
  std::vector<double> allowed;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(keep.size()); ++i) {
    const std::int64_t key = i % c.keys, query = i / c.keys % c.queries;
    allowed.push_back(keep[static_cast<std::size_t>(i)] && (!c.causal || key <= query + c.keys - c.queries));
  }
  return allowed;
}

AttentionMasking options_of(const AllowedCase& c, Device device) {
  AttentionMasking o{.drop_key = c.drop_key, .dropout = c.dropout, .empty = c.empty, .causal = c.causal};
  if (c.masks != KeyMasks::none)
    o.keep = Tensor(array_from(kept_by_mask(c), {samples_of_case, heads_of_case, c.queries, c.keys}, device));
  return o;
}

Tensor joined(const Tensor& x) {  // [B, H, T, E] -> [B, T, H E]
  return reshape(permute(x, {0, 2, 1, 3}), {samples_of_case, x.dim(2), heads_of_case * width_of_case});
}

// Applies a form of attention to q, k and v [B, H, T, E]. `bf16` rounds them.
Tensor attend(Form form, bool bf16, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMasking& o) {
  if (form == Form::separate) return attention(q, k, v, o);
  if (form == Form::talking) {
    const Defaults like{q.dtype(), q.device()};
    const Tensor one = tensor({{1, 0}, {0, 1}}, like), none = zeros({heads_of_case}, like);
    return attention_talking(q, k, v, one, none, one, none, o);
  }
  const auto stored = [&](const Tensor& x) { return bf16 ? cast(x, DType::bf16) : x; };
  const Tensor y =
      cast(attention_q_kv(stored(joined(q)), stored(concat({joined(k), joined(v)}, -1)), heads_of_case, o), q.dtype());
  return permute(reshape(y, {samples_of_case, q.dim(2), heads_of_case, width_of_case}), {0, 2, 1, 3});
}

// Row `query` of [B, H, T, E] and the other rows.
Tensor row_of(const Tensor& x, std::int64_t query) { return slice(x, 2, query, query + 1); }
bool all_zero(const Tensor& x) {
  return std::ranges::all_of(x.values(), [](double v) { return v == 0; });
}

// Checks each query alone: its output, and the gradients of its output.
void check_allowed(const AllowedCase& c, Form form, bool bf16, Defaults where) {
  const Tensor q = random_normal({samples_of_case, heads_of_case, c.queries, width_of_case}, 1, "q", where),
               k = random_normal({samples_of_case, heads_of_case, c.keys, width_of_case}, 1, "k", where),
               v = random_normal({samples_of_case, heads_of_case, c.keys, width_of_case}, 1, "v", where),
               other = random_normal({samples_of_case, heads_of_case, c.keys, width_of_case}, 1, "other", where);
  const AttentionMasking o = options_of(c, where.device);
  const Tensor allowed = tensor(allowed_keys(c), {samples_of_case, heads_of_case, c.queries, c.keys}, where);
  for (std::int64_t query = 0; query < c.queries; ++query) {
    CAPTURE(query);
    const Tensor may = reshape(row_of(allowed, query),
                               {samples_of_case, heads_of_case, c.keys, 1}),  // 1 if the query may see the key
        any = max(may, {2}, true);
    const Tensor forbidden = 1 - may;
    struct Seen {
      Tensor y, dq;
    };
    std::optional<Seen> first;
    for (const auto& [changed, recorded] : {std::pair{false, false}, {true, false}, {true, true}}) {
      CAPTURE(changed, recorded);
      const Tensors in{variable(q), variable(changed ? k + 3 * forbidden * other : k),
                       variable(changed ? v - 5 * forbidden * other : v)};
      const Tensor y = row_of(attend(form, bf16, in[0], in[1], in[2], o), query);
      const Tensors g =
          grad(y, in, {.create_graph = recorded, .cotangent = random_normal(y.shape(), 1, "cotangent", where)});
      CHECK(all_zero(y.detach() * (1 - any)));
      CHECK(all_zero(row_of(g[0].detach(), query) * (1 - any)));
      CHECK(all_zero(g[1].detach() * forbidden));
      CHECK(all_zero(g[2].detach() * forbidden));
      const Seen now{y.detach(), row_of(g[0].detach(), query)};
      if (!first) first = now;
      CHECK(now.y.values() == first->y.values());
      // A recorded pass sums in another order.
      CHECK(relative_error(now.dq, first->dq) < (!recorded ? 1e-30 : bf16 ? 0.05 : 1e-5));
    }
  }
}

// Checks value and gradients of attention() against the definition: a softmax over the keys that are left, and the
// rules for rows without such a key.
void check_definition(const AllowedCase& c, Form form, Defaults where) {
  const Tensor q = random_normal({samples_of_case, heads_of_case, c.queries, width_of_case}, 1, "q", where),
               k = random_normal({samples_of_case, heads_of_case, c.keys, width_of_case}, 1, "k", where),
               v = random_normal({samples_of_case, heads_of_case, c.keys, width_of_case}, 1, "v", where);
  const AttentionMasking o = options_of(c, where.device);
  const AttentionCall call = detail::make_call("attention", q, k, v, o);
  const detail::Masks drawn = detail::draw_masks(call, q);
  const Tensor allowed = tensor(allowed_keys(c), {samples_of_case, heads_of_case, c.queries, c.keys}, where);
  std::vector<std::uint8_t> keep;  // allowed, and not dropped by DropKey; else by the rule
  std::vector<double> uniform;
  const std::vector<double> may = allowed.values();
  std::vector<std::uint8_t> dropped(static_cast<std::size_t>(c.keys), 0);
  for (std::int64_t row = 0; row < samples_of_case * heads_of_case * c.queries; ++row) {
    if (c.drop_key > 0)
      drop_keys(call.drop_key, call.step, call.first_sample + row / (heads_of_case * c.queries), heads_of_case,
                row / c.queries % heads_of_case, row % c.queries, dropped);
    const double* const of_row = &may[static_cast<std::size_t>(row * c.keys)];
    double count = 0, left = 0;
    for (std::size_t j = 0; j < dropped.size(); ++j) count += of_row[j], left += of_row[j] != 0 && !dropped[j];
    for (std::size_t j = 0; j < dropped.size(); ++j) {
      keep.push_back(of_row[j] != 0 && (left > 0 ? !dropped[j] : c.empty == EmptyRow::keep_all));
      uniform.push_back(left == 0 && c.empty == EmptyRow::paper && of_row[j] != 0 ? 1 / count : 0);
    }
  }
  const Tensor mask(array_from(keep, allowed.shape(), where.device)),
      constant = tensor(uniform, allowed.shape(), where);
  CHECK(drawn.keep.values() == mask.values());
  const Tensors got =
      value_and_gradients([&](const Tensors& in) { return attend(form, false, in[0], in[1], in[2], o); }, {q, k, v});
  const Tensors wanted = value_and_gradients(
      [&](const Tensors& in) {
        return attention_composed(in[0], in[1], in[2], call.scale, mask, drawn.multiplier) +
               matmul(drawn.multiplier.defined() ? constant * drawn.multiplier : constant, in[2]);
      },
      {q, k, v});
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(relative_error(got[i], wanted[i]) < (where.dtype == DType::f64 ? 1e-13 : 1e-5));
}

const std::vector<std::pair<std::int64_t, std::int64_t>> all_extents{{4, 4}, {3, 6}, {6, 3}, {1, 5}, {5, 1}};
constexpr Form forms[]{Form::separate, Form::packed, Form::talking};

}  // namespace

TEST_CASE("attention depends on allowed keys only, under every rule for empty rows") {
  for (const Defaults where : {reference_f64, cpu_f32})
    each_case(all_extents, [&](const AllowedCase& c) {
      for (const Form form : forms) {
        check_allowed(c, form, false, where);
        check_definition(c, form, where);
      }
    });
}

TEST_CASE("attention in bf16 depends on allowed keys only, under every rule for empty rows") {
  for (const bool by_amx : {false, true}) {
    std::optional<EmulatedAmx> emulated;
    if (by_amx) emulated.emplace();
    each_case({{3, 5}, {5, 3}}, [&](const AllowedCase& c) { check_allowed(c, Form::packed, true, cpu_f32); });
  }
}

TEST_CASE("attention on cuda depends on allowed keys only, under every rule for empty rows") {
  PLUMB_REQUIRE_CUDA();
  each_case({{3, 5}, {5, 3}}, [&](const AllowedCase& c) {
    for (const Form form : forms) {
      check_definition(c, form, cuda_f32);
      if (c.dropout == 0) check_allowed(c, form, form == Form::packed, cuda_f32);
    }
  });
}

TEST_CASE("a causal layer with DropKey and uniform empty rows sees no later token") {
  nn::Attention layer({.dim = 16, .heads = 2, .drop_key = {.rate = 0.3, .empty = EmptyRow::paper}, .causal = true});
  nn::initialize(layer, 0);
  const Tensor x = variable(random_normal({1, 8, 16}, 0, "x"));
  for (std::uint32_t step = 0; step < 10; ++step) {
    const RandomScope random({.seed = 1, .step = step});
    CHECK(all_zero(slice(grad(sum(slice(layer(x), 1, 0, 1)), x), 1, 1, 8)));
  }
}
