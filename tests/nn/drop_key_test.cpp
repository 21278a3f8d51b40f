// Tests of DropKey: the expected and the actual drops.
#include "core/drop_key.h"
#include "nn/layers/drop_key.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "nn/blocks/stack.h"
#include "nn/layers/attention.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::vector<DropShape> shapes{DropShape::plain, DropShape::block, DropShape::cross};
const std::vector<DropSharing> sharings{DropSharing::per_entry, DropSharing::heads, DropSharing::column};
constexpr std::int64_t step_count = 4000;

// Returns the statistics of one row in each of many steps.
std::vector<nn::DropKeyStatistics> rows(const nn::DropKey& o, std::int64_t keys, KeyGrid grid) {
  std::vector<nn::DropKeyStatistics> all;
  for (std::uint32_t step = 0; step < step_count; ++step)
    all.push_back(nn::drop_key_statistics(o, grid, 1, 1, 1, keys, 99, {.step = step}));
  return all;
}

nn::AttentionOptions layer_options(DropShape shape, DropSharing sharing = DropSharing::per_entry) {
  return {.dim = 12,
          .heads = 3,
          .drop_key = {.rate = 0.6, .shape = shape, .sharing = sharing},
          .grid = {3, 3},
          .init = nn::Init::truncated_normal(0.5)};
}

}  // namespace

TEST_CASE("the expected drop ratio is the average over draws, within four standard errors") {
  for (DropShape shape : shapes)
    for (std::int64_t window : {1, 3})
      for (double rate : {0.05, 0.3, 0.8})
        for (std::int64_t off_grid : {0, 2}) {
          const nn::DropKey o{.rate = rate, .shape = shape, .window = window};
          const KeyGrid grid{5, 6};
          const std::int64_t keys = grid.cells() + off_grid;
          INFO(enum_name(shape) << " window " << window << " rate " << rate << " keys " << keys);
          double sum = 0, squares = 0;
          for (const auto& row : rows(o, keys, grid)) {
            sum += row.drop_ratio;
            squares += row.drop_ratio * row.drop_ratio;
          }
          const double mean = sum / step_count, error = std::sqrt((squares / step_count - mean * mean) / step_count);
          CHECK(std::abs(mean - nn::expected_drop_ratio(o, keys, grid)) < 4 * error);
        }
}

TEST_CASE(
    "a block drops interior keys at its rate and border keys less often, a cross of window 1 drops all keys alike") {
  const KeyGrid grid{5, 6};
  const nn::DropKey block{.rate = 0.3, .shape = DropShape::block};
  const std::vector<double> p = nn::key_drop_probabilities(block, 31, grid);
  REQUIRE(p.size() == 31);
  CHECK(p[0] == 0);
  const auto at = [&](std::size_t i, std::size_t j) { return p[1 + i * 6 + j]; };
  CHECK(at(2, 2) == Approx(0.3).epsilon(1e-3));  // the seed rate is rounded to 16 bits
  CHECK(at(0, 0) == Approx(1 - std::pow(0.7, 1.0 / 9)).epsilon(1e-3));
  CHECK(at(0, 5) == at(0, 0));
  CHECK(at(4, 2) == Approx(1 - std::pow(0.7, 3.0 / 9)).epsilon(1e-3));
  CHECK(at(1, 1) == Approx(1 - std::pow(0.7, 4.0 / 9)).epsilon(1e-3));
  for (double each : nn::key_drop_probabilities({.rate = 0.3, .shape = DropShape::cross}, 30, grid))
    CHECK(each == Approx(0.3).epsilon(2e-3));
  for (double each : nn::key_drop_probabilities({.rate = 0.3}, 30)) CHECK(each == drop_threshold(0.3) / 65536.0);
  // Compares the probability of each key with the share of drops in many draws.
  for (const nn::DropKey& o : {block, nn::DropKey{.rate = 0.3, .shape = DropShape::cross, .window = 3}}) {
    const KeyMask drop = key_mask(o.rate, o.shape, o.window, o.sharing, grid, 31, 5);
    std::vector<double> count(31);
    std::vector<std::uint8_t> row(31);
    for (std::uint32_t step = 0; step < step_count; ++step) {
      drop_keys(drop, step, 0, 1, 0, 0, row);
      for (std::size_t j = 0; j < 31; ++j) count[j] += row[j];
    }
    const std::vector<double> expected = nn::key_drop_probabilities(o, 31, grid);
    for (std::size_t j = 0; j < 31; ++j)
      CHECK(std::abs(count[j] / step_count - expected[j]) <=
            4.5 * std::sqrt(expected[j] * (1 - expected[j]) / step_count));
  }
}

TEST_CASE("the probability of an empty row is exact if possible, else an estimate with its standard error") {
  for (DropSharing sharing : sharings) {
    const Estimate e = nn::empty_row_probability({.rate = 0.75, .sharing = sharing}, 5);
    CHECK(e.value == Approx(std::pow(0.75, 5)));
    CHECK(e.standard_error == 0);
  }
  for (DropShape shape : {DropShape::block, DropShape::cross}) {
    const Estimate e =
        nn::empty_row_probability({.rate = 1, .shape = shape}, 13, {3, 4});  // one key is outside the grid
    CHECK((e.value == 0 && e.standard_error == 0));
    CHECK(nn::empty_row_probability({.rate = 1, .shape = shape}, 12, {3, 4}).value == 1);
    CHECK(nn::empty_row_probability({.rate = 1, .shape = shape}, 42, {6, 7}).value == 1);
  }
  // On a grid of 4 x 4, a 3 x 3 block can drop all keys only if all four possible centres are seeds.
  const nn::DropKey block{.rate = 0.9, .shape = DropShape::block};
  const double q = key_mask(0.9, DropShape::block, 0, DropSharing::per_entry, {4, 4}, 16, 0).threshold / 65536.0;
  CHECK(nn::empty_row_probability(block, 16, {4, 4}).value == Approx(std::pow(q, 4)));
  // A cross of window 1 drops all keys of a 2 x 3 grid if each row, or each column, has a seed.
  const nn::DropKey cross{.rate = 0.8, .shape = DropShape::cross};
  const double s = 1 - key_mask(0.8, DropShape::cross, 0, DropSharing::per_entry, {2, 3}, 6, 0).threshold /
                           65536.0;  // probability of no seed
  const double rows_hit = std::pow(1 - std::pow(s, 3), 2), columns_hit = std::pow(1 - std::pow(s, 2), 3);
  double both = 0;  // computed by inclusion and exclusion over the columns without a seed
  for (int k = 0; k <= 3; ++k)
    both += (k % 2 ? -1 : 1) * (k == 0 || k == 3 ? 1 : 3) * std::pow(s, 2 * k) * std::pow(1 - std::pow(s, 3 - k), 2);
  CHECK(nn::empty_row_probability(cross, 6, {2, 3}).value == Approx(rows_hit + columns_hit - both));
  // Compares the exact result and the estimate with the share in other draws. The 5 x 6 grid is too large for
  // enumeration.
  for (const KeyGrid grid : {KeyGrid{3, 4}, KeyGrid{5, 6}}) {
    const nn::DropKey o{.rate = 0.9, .shape = DropShape::cross};
    const Estimate e = nn::empty_row_probability(o, grid.cells(), grid);
    CHECK((e.standard_error == 0) == (grid.height == 3));
    double empty = 0;
    for (const auto& row : rows(o, grid.cells(), grid)) empty += row.empty_rows;
    const double p = empty / step_count;
    CHECK(p > 0.05);
    CHECK(std::abs(p - e.value) < 4 * (std::sqrt(p * (1 - p) / step_count) + e.standard_error));
    CHECK(e.standard_error < 0.002);
  }
  const Estimate rare = nn::empty_row_probability({.rate = 0.05, .shape = DropShape::cross}, 64, {8, 8});
  CHECK(rare.value == 0);
  CHECK(rare.standard_error == Approx(1e-5).epsilon(0.01));
}

TEST_CASE("a layer's statistics are those of the mask in its forward pass") {
  const std::int64_t batch = 4, tokens = 10;
  const RandomScope random({.seed = 2, .step = 9, .first_sample = 8});
  for (DropShape shape : shapes)
    for (DropSharing sharing : sharings)
      for (bool causal : {false, true}) {
        INFO(enum_name(shape) << " " << enum_name(sharing) << (causal ? " causal" : ""));
        nn::AttentionOptions o = layer_options(shape, sharing);
        o.causal = causal;
        struct Root : nn::Module {
          explicit Root(const nn::AttentionOptions& options) : attn(this, "attn", options) {}
          nn::Child<nn::Attention> attn;
        } root(o);
        // Calls the op under the layer's path. The values v are chosen so that the output equals the rows of
        // probabilities.
        const PathScope scope(root.attn.path());
        std::vector<double> one(100);
        for (std::size_t i = 0; i < 100; ++i) one[i] = i % 11 == 0;
        const Tensor q = random_normal({batch, 3, tokens, 10}, 1, "q"),
                     v = broadcast_to(tensor(one, {10, 10}), {batch, 3, 10, 10});
        const std::vector<double> p = attention(q, q, v,
                                                {.drop_key = 0.6,
                                                 .empty = EmptyRow::zero,
                                                 .causal = causal,
                                                 .drop_shape = shape,
                                                 .drop_sharing = sharing,
                                                 .grid = {3, 3}})
                                          .values();
        double seen = 0, zeros = 0, empty = 0;
        for (std::size_t row = 0; row < p.size(); row += 10) {
          const std::size_t sees = causal ? row / 10 % 10 + 1 : 10;
          const auto n = static_cast<std::size_t>(std::count(&p[row], &p[row] + sees, 0.0));
          seen += static_cast<double>(sees);
          zeros += static_cast<double>(n);
          empty += n == sees;
        }
        const nn::DropKeyStatistics got = root.attn.drop_key_statistics(batch, tokens, tokens);
        CHECK(got.drop_ratio == Approx(zeros / seen));
        CHECK(got.empty_rows == Approx(empty * 10 / static_cast<double>(p.size())));
        CHECK(got.drop_ratio > 0.05);
        root.attn.eval();
        CHECK(root.attn.drop_key_statistics(batch, tokens, tokens).drop_ratio == 0);
      }
}

TEST_CASE("a layer passes its DropKey to attention in training and drops nothing in evaluation") {
  const RandomScope random({.seed = 2, .step = 9});
  for (DropShape shape : shapes)
    for (DropSharing sharing : sharings) {
      INFO(enum_name(shape) << " " << enum_name(sharing));
      nn::AttentionOptions options = layer_options(shape, sharing);
      options.drop_key.window = 3;
      options.drop_key.empty = EmptyRow::zero;
      nn::Attention layer(options);
      options.drop_key = {};
      nn::Attention plain(options);
      initialize(layer, 1);
      initialize(plain, 1);
      const Tensor x = random_normal({4, 9, 12}, 3, "x");
      const Tensor qkv = layer.first()(x);
      {
        const PathScope scope(layer.path());
        const Tensor heads = attention_qkv(qkv, 3,
                                           {.drop_key = 0.6,
                                            .empty = EmptyRow::zero,
                                            .drop_shape = shape,
                                            .drop_window = 3,
                                            .drop_sharing = sharing,
                                            .grid = {3, 3}});
        CHECK(layer(x).values() == layer.last()(heads).values());
      }
      CHECK(layer(x).values() != plain(x).values());
      layer.eval();
      CHECK(layer(x).values() == plain(x).values());
    }
}

TEST_CASE("a layer with a structured DropKey needs a grid that fits its tokens") {
  nn::AttentionOptions o = layer_options(DropShape::block);
  o.grid.width = 0;
  CHECK_THAT(error_of([&] { nn::Attention bad(o); }),
             contains("expected the grid of patches that the shape block drops on, got 3 x 0"));
  o.grid.width = 2;
  CHECK_THAT(error_of([&] { nn::Attention bad(o); }),
             contains("expected an odd window that fits into the grid of 3 x 2 patches, got 3"));
  o.grid.width = 4;
  nn::Attention layer(o);
  nn::initialize(layer, 0);
  CHECK_THAT(error_of([&] {
               layer(zeros({1, 10, 12}));
             }),
             contains("expected a grid of at most 10 keys, got 3 x 4 patches"));
  layer.eval();
  CHECK(layer(zeros({1, 10, 12})).shape() == Shape{1, 10, 12});
  CHECK_THAT(error_of([&] { nn::drop_key_statistics({.rate = 0.1}, {}, 0, 1, 1, 1, 0, {}); }),
             contains("at least one sample, head and query, got 0"));
  CHECK_THAT(error_of([&] { nn::expected_drop_ratio({.rate = 0.1}, 0); }),
             contains("[drop_key] expected at least one key, got 0"));
}

TEST_CASE("matched by share, all shapes are expected to drop the same number of patches, also in a layer") {
  for (DropShape shape : shapes)
    for (std::int64_t side : {4, 8, 14})
      for (double share : {0.05, 0.3, 0.7}) {
        INFO(enum_name(shape) << ", " << side << " patches a side, " << share);
        const nn::DropKey matched =
            nn::by_rate({.rate = share, .shape = shape, .match = nn::DropMatch::share}, {side, side});
        CHECK(matched.match == nn::DropMatch::rate);
        CHECK(nn::expected_drop_ratio(matched, side * side, {side, side}) == Approx(share).margin(1e-3));
        // Matched by rate, a block drops fewer patches.
        if (shape == DropShape::block && side == 4 && share == 0.3)
          CHECK(nn::expected_drop_ratio({.rate = share, .shape = shape}, side * side, {side, side}) < 0.18);
      }
  CHECK(nn::by_rate({.rate = 0.3, .shape = DropShape::plain, .match = nn::DropMatch::share}, {}).rate == 0.3);
  CHECK(nn::by_rate({.rate = 0, .shape = DropShape::block, .match = nn::DropMatch::share}, {4, 4}).rate == 0);
  CHECK(nn::by_rate({.rate = 0.3, .shape = DropShape::block}, {4, 4}).rate == 0.3);

  nn::Attention layer({.dim = 12,
                       .heads = 3,
                       .drop_key = {.rate = 0.3, .shape = DropShape::block, .match = nn::DropMatch::share},
                       .grid = {4, 4}});
  const RandomScope random({.seed = 2, .step = 9});
  CHECK(layer.drop_key_statistics(200, 16, 16).drop_ratio == Approx(0.3).margin(0.01));
}

TEST_CASE("all drops in attention can be switched off for the last part of training") {
  for (const bool talking : {false, true}) {
    const nn::AttentionOptions o{.heads = 3,
                                 .drop_key = {.rate = 0.5},
                                 .dropout = 0.2,
                                 .drop_head = {.rate = 0.3},
                                 .head_mix = talking ? nn::HeadMix::cait : nn::HeadMix::none};
    nn::Stack stack(
        {.dim = 12, .depth = 2, .method = "pre", .junctions = {nn::self_attention(o), nn::mlp({.hidden = 24})}});
    initialize(stack, 1);
    const RandomScope random({.seed = 2, .step = 9});
    const Tensor x = random_normal({4, 9, 12}, 3, "x");
    const auto dropped = stack(x).values();
    stack.drop_in_attention(false);
    const auto off = stack(x).values();
    auto& attention = dynamic_cast<nn::AttentionBranch&>(stack.blocks()[0].branch("attn"));
    CHECK(attention.drop_key_statistics(4, 9, 9).drop_ratio == 0);
    stack.eval();
    CHECK(stack(x).values() == off);
    stack.train();
    stack.drop_in_attention(true);
    CHECK(stack(x).values() == dropped);
    CHECK(dropped != off);
    CHECK(attention.drop_key_statistics(4, 9, 9).drop_ratio > 0.3);
  }
}
