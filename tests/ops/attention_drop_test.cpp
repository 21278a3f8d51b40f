// DropKey in attention: every shape, sharing and policy for empty rows, in the fused and the
// composed form, on both backends.
#include <algorithm>
#include <cmath>

#include "autograd/ops/attention_masks.h"
#include "core/backend.h"
#include "core/drop_key.h"
#include "core/random.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// The keys are a class token and a grid of 5 x 6.
constexpr std::int64_t batch = 2, heads = 3, query_count = 6, head_dim = 5, key_count = 31;
constexpr KeyGrid grid{5, 6};
const RandomState state{.seed = 11, .step = 3, .first_sample = 40};
const Path path = std::make_shared<const std::string>("blocks.0.attn");

const std::vector<DropShape> shapes{DropShape::plain, DropShape::block, DropShape::cross};
const std::vector<DropSharing> sharings{DropSharing::per_entry, DropSharing::heads, DropSharing::column};
const std::vector<Defaults> places{reference_f64, reference_f32, cpu_f32};

template <class F>
void each_form(F&& f) {
  const RandomScope random(state);
  const PathScope scope(path);
  for (DropShape shape : shapes)
    for (DropSharing sharing : sharings) {
      INFO(enum_name(shape) << " " << enum_name(sharing));
      f(AttentionMasking{.drop_key = 0.5, .drop_shape = shape, .drop_sharing = sharing, .grid = grid});
    }
}

struct Inputs {
  Tensor q, k, v;
};
Inputs inputs(Defaults where, std::int64_t keys = key_count) {
  return {random_normal({batch, heads, query_count, head_dim}, 1, "q", where),
          random_normal({batch, heads, keys, head_dim}, 1, "k", where),
          random_normal({batch, heads, keys, head_dim}, 1, "v", where)};
}

// Returns a v for which each output row is the row of probabilities.
Tensor identity(std::int64_t keys, Defaults where) {
  std::vector<double> one(static_cast<std::size_t>(keys * keys));
  for (std::int64_t i = 0; i < keys; ++i) one[static_cast<std::size_t>(i * keys + i)] = 1;
  return broadcast_to(tensor(one, {keys, keys}, where), {batch, heads, keys, keys});
}

// Returns P [batch, heads, query_count, keys]. q and k have as many columns as there are keys, so that v can be the
// identity.
std::vector<double> probabilities(const AttentionMasking& o, Defaults where, std::int64_t keys) {
  return attention(random_normal({batch, heads, query_count, keys}, 1, "q", where),
                   random_normal({batch, heads, keys, keys}, 1, "k", where), identity(keys, where), o)
      .values();
}

// Returns the keys that the draws drop: [batch, heads, query_count, keys], 1 = dropped.
std::vector<std::uint8_t> drawn(const AttentionMasking& o, std::int64_t keys) {
  const KeyMask drop =
      key_mask(o.drop_key, o.drop_shape, o.drop_window, o.drop_sharing, o.grid, keys, random_key(state.seed, *path));
  std::vector<std::uint8_t> all, row(static_cast<std::size_t>(keys));
  for (std::int64_t i = 0; i < batch * heads * query_count; ++i) {
    drop_keys(drop, state.step, state.first_sample + i / (heads * query_count), heads, i / query_count % heads,
              i % query_count, row);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace

TEST_CASE("attention with DropKey at rate 0 is plain attention bit for bit") {
  each_form([](AttentionMasking o) {
    o.drop_key = 0;
    for (Defaults where : places) {
      const Inputs x = inputs(where);
      CHECK(attention(x.q, x.k, x.v, o).values() == attention(x.q, x.k, x.v).values());
    }
  });
}

TEST_CASE("attention drops the keys of drop_keys, and its rows sum to 1 over the others") {
  each_form([](const AttentionMasking& o) {
    const std::vector<std::uint8_t> dropped = drawn(o, key_count);
    CHECK(std::ranges::count(dropped, 1) > 0);
    for (Defaults where : places) {
      const std::vector<double> p = probabilities(o, where, key_count);
      for (std::size_t row = 0; row < p.size(); row += key_count) {
        if (std::all_of(&dropped[row], &dropped[row] + key_count, [](auto d) { return d != 0; }))
          continue;  // an empty row keeps all its keys
        double sum = 0;
        for (std::size_t j = 0; j < key_count; ++j) {
          if ((p[row + j] == 0) != (dropped[row + j] != 0))
            FAIL_CHECK("key " << j << " of row " << row / key_count << ": p " << p[row + j]);
          sum += p[row + j];
        }
        CHECK(sum == Approx(1).epsilon(1e-6));
      }
      const Inputs x = inputs(where);
      for (double y : attention(x.q, x.k, ones_like(x.v), o).values())
        if (!(std::abs(y - 1) < 1e-6)) FAIL_CHECK("attention to ones gives " << y);
    }
  });
}

TEST_CASE("plain DropKey in attention drops the same keys as in earlier versions") {
  const RandomScope random(state);
  const PathScope scope(path);
  const std::string rows[] = {"1100010100", "0010001000", "1100111110"};
  for (Defaults where : places) {
    const Tensor q = random_normal({2, 2, 4, 10}, 1, "q", where), k = random_normal({2, 2, 10, 10}, 1, "k", where);
    std::vector<double> one(400);
    for (std::size_t i = 0; i < 400; ++i) one[i] = i % 100 % 11 == 0;
    const std::vector<double> p = attention(q, k, tensor(one, {2, 2, 10, 10}, where), {.drop_key = 0.4}).values();
    for (const auto& [row, expected] : {std::pair<std::size_t, std::string>{0, rows[0]},
                                        {6, rows[1]},
                                        {15, rows[2]}}) {  // rows of [sample, head, query]
      std::string got;
      for (std::size_t j = 0; j < 10; ++j) got += p[row * 10 + j] == 0 ? '1' : '0';
      CHECK(got == expected);
    }
  }
}

TEST_CASE("DropKey is a dropout mask followed by renormalisation of the row: value and gradients") {
  each_form([](const AttentionMasking& o) {
    const std::vector<std::uint8_t> dropped = drawn(o, key_count);
    std::vector<double> kept(dropped.begin(), dropped.end());
    for (std::size_t row = 0; row < kept.size(); row += key_count) {
      const bool empty = std::all_of(&dropped[row], &dropped[row] + key_count, [](auto d) { return d != 0; });
      for (std::size_t j = 0; j < key_count; ++j) kept[row + j] = empty || !dropped[row + j];
    }
    const Tensor m = tensor(kept, {batch, heads, query_count, key_count}, reference_f64);
    const Inputs x = inputs(reference_f64);
    const Tensors fused =
        value_and_gradients([&](const Tensors& in) { return attention(in[0], in[1], in[2], o); }, {x.q, x.k, x.v});
    const Tensors renormalised = value_and_gradients(
        [&](const Tensors& in) {
          const Tensor p =
              m * softmax(matmul(in[0], in[1], false, true) * (1 / std::sqrt(static_cast<double>(head_dim))));
          return matmul(p / sum(p, {-1}, true), in[2]);
        },
        {x.q, x.k, x.v});
    for (std::size_t i = 0; i < fused.size(); ++i) CHECK(relative_error(fused[i], renormalised[i]) < 1e-12);
  });
}

TEST_CASE("rows that lose every key follow the policy for empty rows with every shape") {
  constexpr std::int64_t keys = 12;  // the keys are the cells of the grid
  each_form([](AttentionMasking o) {
    o.grid = {3, 4};
    o.drop_key = o.drop_shape == DropShape::plain   ? 0.97
                 : o.drop_shape == DropShape::block ? 0.9999
                                                    : 0.9;  // the rate at which about half of the rows are empty
    const std::vector<std::uint8_t> dropped = drawn(o, keys);
    const auto is_empty = [&](std::size_t row) {
      return std::all_of(&dropped[row * keys], &dropped[row * keys] + keys, [](auto d) { return d != 0; });
    };
    std::size_t empty_rows = 0;
    for (std::size_t row = 0; row < batch * heads * query_count; ++row) empty_rows += is_empty(row);
    CHECK(empty_rows > 0);
    CHECK(empty_rows < batch * heads * query_count);
    for (Defaults where : places) {
      const std::vector<double> plain = probabilities({}, where, keys);
      for (EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper}) {
        o.empty = empty;
        INFO(enum_name(empty));
        const std::vector<double> p = probabilities(o, where, keys);
        for (std::size_t i = 0; i < p.size(); ++i) {
          const double expected = empty == EmptyRow::keep_all ? plain[i] : empty == EmptyRow::zero ? 0 : 1.0 / keys;
          if (is_empty(i / keys) ? std::abs(p[i] - expected) > 1e-6 : (p[i] == 0) != (dropped[i] != 0))
            FAIL_CHECK("entry " << i << ": " << p[i]);
        }
        // Except with keep_all, no gradient flows to the scores of an empty row.
        const Inputs x = inputs(where, keys);
        const Tensors g =
            value_and_gradients([&](const Tensors& in) { return attention(in[0], in[1], in[2], o); }, {x.q, x.k, x.v});
        const std::vector<double> dq = g[1].values();
        for (std::size_t row = 0; row < batch * heads * query_count; ++row)
          if (is_empty(row)) {
            const bool none =
                std::all_of(&dq[row * head_dim], &dq[row * head_dim] + head_dim, [](double d) { return d == 0; });
            CHECK(none == (empty != EmptyRow::keep_all));
          }
      }
    }
  });
}

TEST_CASE("attention refuses the shapes block and cross without a grid that fits") {
  const Inputs x = inputs(reference_f32);
  CHECK_THAT(error_of([&] { attention(x.q, x.k, x.v, {.drop_key = 0.1, .drop_shape = DropShape::block}); }),
             contains("[drop_key] expected the grid of patches that the shape block drops on, got 0 x 0"));
  CHECK_THAT(error_of([&] {
               attention(x.q, x.k, x.v, {.drop_key = 0.1, .drop_shape = DropShape::cross, .grid = {4, 8}});
             }),
             contains("[drop_key] expected a grid of at most 31 keys, got 4 x 8 patches"));
  CHECK_THAT(error_of([&] { attention(x.q, x.k, x.v, {.drop_key = -0.1}); }),
             contains("[drop_key] expected a probability in [0, 1], got -0.1"));
}

TEST_CASE("error messages of attention name the called op") {
  const Inputs x = inputs(reference_f32);
  for (const double scale : {-0.5, std::nan("")})
    CHECK_THAT(error_of([&] { attention(x.q, x.k, x.v, {.scale = scale}); }),
               contains("[attention] expected a finite scale of at least 0 for the scores, got "));
  CHECK_THAT(error_of([&] { attention(x.q, x.k, x.q); }),
             contains("[attention] expected q [B, H, N, E] and k, v [B, H, M, E], got "));
  CHECK_THAT(error_of([&] { attention(x.q, x.k, x.v, {.dropout = 0.999999}); }),
             contains("[attention] expected a dropout probability of at most 1 - 2^-16, got 0.999999"));
  const Tensor qkv = zeros({2, 3, 12});
  CHECK_THAT(error_of([&] { attention_qkv(qkv, 5); }),
             contains("[attention_qkv] expected qkv [B, T, 3 D] with D a multiple of 5 heads, got [2, 3, 12]"));
  CHECK_THAT(error_of([&] { attention_qkv(qkv, 2, {.scale = -1}); }),
             contains("[attention_qkv] expected a finite scale"));
  CHECK_THAT(error_of([&] { attention_qkv(qkv, 2, {.dropout = 1}); }),
             contains("[attention_qkv] expected a dropout probability in [0, 1), got 1"));
}

TEST_CASE("the composed form draws dropout masks eight keys at a time and only with dropout") {
  const RandomScope random(state);
  const PathScope scope(path);
  const std::uint64_t key = random_key(state.seed, *path);
  for (const double rate : {0.0, 0.4}) {
    const Inputs x = inputs(reference_f64);
    const AttentionCall call = detail::make_call("attention", x.q, x.k, x.v, {.dropout = rate});
    const detail::Masks masks = detail::draw_masks(call, x.q);
    REQUIRE(masks.multiplier.defined() == (rate > 0));
    CHECK(attention(x.q, x.k, x.v, {.dropout = rate}).shape() ==
          attention_composed(x.q, x.k, x.v, call.scale, masks.keep, masks.multiplier).shape());
    if (rate == 0) continue;
    const std::vector<double> multiplier = masks.multiplier.values();
    for (std::uint32_t row = 0; row < batch * heads * query_count; ++row)
      for (std::uint32_t j = 0; j < key_count; ++j) {
        const Draw draw = attention_draw(key, state.step, Purpose::dropout,
                                         state.first_sample * heads + row / query_count, row % query_count, j / 8);
        const double expected = draw16(draw, static_cast<int>(j % 8)) < 26214 ? 0 : 65536 / (65536 - 26214.0);
        if (multiplier[row * key_count + j] != Approx(expected))
          FAIL_CHECK("row " << row << " key " << j << ": " << multiplier[row * key_count + j]);
      }
  }
}
