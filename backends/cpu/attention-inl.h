// Code shared by the forward and the backward pass of attention: the scratch memory of a (sample, head) pair, and the
// keys that the queries of the pair may attend to.
#if defined(PLUMB_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_ATTENTION_INL
#undef PLUMB_CPU_ATTENTION_INL
#else
#define PLUMB_CPU_ATTENTION_INL
#endif

#include <algorithm>
#include <bit>

#include "backends/cpu/attention.h"
#include "backends/cpu/math-inl.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/philox-inl.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Sizes of the padded matrices. Rows and columns fill tiles of `tile_rows` and `tile_columns`. Queries are processed in
// blocks of at most `rows`, so that the scores of a block stay in the first-level and second-level caches.
struct Layout {
  std::int64_t keys;      // columns of the scores
  std::int64_t dims;      // columns of out and of the gradients
  std::int64_t rows;      // largest number of queries per block
  std::int64_t all_rows;  // rows of the scores
  std::int64_t all_keys;  // rows of the gradients of k and v
  std::int64_t groups;    // groups of eight keys
  std::int64_t words;     // 64-bit words per row of key bits

  explicit Layout(const AttentionCall& call, std::int64_t tile_rows = 1, std::int64_t tile_columns = W)
      : keys(round_up(call.keys, tile_columns)),
        dims(round_up(call.head_dim, tile_columns)),
        all_keys(round_up(call.keys, tile_rows)),
        groups((call.keys + 7) / 8),
        words((keys + 63) / 64) {
    const std::int64_t most = std::clamp<std::int64_t>(6144 / keys, 8, 128), blocks = (call.queries + most - 1) / most;
    rows = std::max<std::int64_t>(1, (call.queries + blocks - 1) / std::max<std::int64_t>(blocks, 1));
    if (blocks > 1) rows = round_up(rows, tile_rows);
    all_rows = round_up(rows, tile_rows);
  }
  std::int64_t mask_floats() const {
    return 2 * round_up(2 * (rows + 1) * (words + 1) + 16, 16) + 2 * round_up(rows * groups + 16, 16) +
           round_up(rows, 16) + round_up(groups / 4 + 16, 16);
  }
};

// Divides a scratch buffer into pieces. Each piece starts on a 64-byte boundary.
class Carver {
 public:
  explicit Carver(float* p) : p_(p) {}
  float* take(std::int64_t floats) {
    float* const piece = p_;
    p_ += round_up(floats, 16);
    return piece;
  }
  template <class T>
  T* take_as(std::int64_t count) {
    return reinterpret_cast<T*>(take((count * static_cast<std::int64_t>(sizeof(T)) + 3) / 4));
  }

 private:
  float* p_;
};

// Returns the address of the row of `token` in head `head` of sample `b`. T is the type of the
// elements. All heads of a call are f32, or all are bf16.
template <class T>
HWY_INLINE const T* row(const Heads& h, std::int64_t b, std::int64_t head, std::int64_t token) {
  return h.array.data<T>() + h.offset + b * h.batch + head * h.head + token * h.token;
}
template <class T>
HWY_INLINE T* row(const HeadsOut& h, std::int64_t b, std::int64_t head, std::int64_t token) {
  return h.array.mutable_data<T>() + h.offset + b * h.batch + head * h.head + token * h.token;
}

// Returns the rows from row `first` of the head on. A product prefetches these rows while it computes.
template <class T, class A>
HWY_INLINE Ahead ahead(const HeadsOf<A>& h, std::int64_t b, std::int64_t head, std::int64_t tokens, std::int64_t dim,
                       std::int64_t first) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
  return {reinterpret_cast<const char*>(row<T>(h, b, head, 0) + first * h.token), h.token * bytes, tokens - first,
          dim * bytes};
}

// A row of key bits.
struct KeyBitsRow {
  const std::uint64_t* bits;
  // Returns the mask of the keys from j to j + W - 1.
  Mask operator[](std::int64_t j) const { return lanes_of_bits(reinterpret_cast<const std::uint8_t*>(bits), j); }
};

// The keys that each query of a block may attend to, as one row of bits per query. Bits from number M on are 0.
class KeyBits {
 public:
  KeyBits(const AttentionCall& call, const Layout& layout, Carver& scratch)
      : call_(call),
        words_(layout.words),
        groups_(layout.groups),
        some_forbidden_(call.keep.defined() || call.causal),
        masked_(some_forbidden_ || call.drop_key.threshold),
        all_(scratch.take_as<std::uint64_t>(words_ + 1)),
        kept_(scratch.take_as<std::uint64_t>(layout.rows * words_ + 1)),
        undropped_(scratch.take_as<std::uint64_t>(layout.rows * words_ + 1)),
        counters_(scratch.take_as<std::uint32_t>(layout.rows * groups_ + 16)),
        drawn_(scratch.take_as<std::uint8_t>(layout.rows * groups_ + 16)),
        seeds_(scratch.take_as<std::uint8_t>(groups_)),
        attends_(scratch.take_as<std::uint8_t>(layout.rows)) {
    std::fill_n(drawn_, layout.rows * groups_ + 16, std::uint8_t{0});
    for (std::int64_t w = 0; w < words_; ++w) {
      const std::int64_t bits = std::clamp<std::int64_t>(call.keys - 64 * w, 0, 64);
      all_[w] = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    }
    all_[words_] = 0;
    std::fill_n(attends_, layout.rows, std::uint8_t{1});
  }

  // Draws the bits of the queries from `first` to `first + rows - 1`.
  void draw(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
    const auto sample_head = static_cast<std::uint32_t>((call_.first_sample + b) * call_.heads + h);
    if (call_.dropout.threshold) {
      count(first, rows);
      draws_below(call_.dropout.random_key, call_.step, Purpose::dropout, sample_head, counters_, rows * groups_,
                  call_.dropout.threshold, drawn_);
      for (std::int64_t r = 0; r < rows; ++r) without(all_, drawn_ + r * groups_, words_, undropped_ + r * words_);
    }
    if (!masked_) return;
    const KeyMask& drop = call_.drop_key;
    const bool column = drop.sharing == DropSharing::column;  // with `column`, one row of draws serves all queries
    if (drop.threshold) {
      const std::int64_t drawn_rows = column ? 1 : rows;
      count(column ? 0 : first, drawn_rows);
      draws_below(drop.random_key, call_.step, Purpose::drop_key,
                  drop.sharing == DropSharing::heads ? sample_head - static_cast<std::uint32_t>(h) : sample_head,
                  counters_, drawn_rows * groups_, drop.threshold, drawn_);
      for (std::int64_t r = 0; drop.shape != DropShape::plain && r < drawn_rows; ++r) {
        std::copy_n(drawn_ + r * groups_, groups_, seeds_);
        drop_by_seeds(drop, call_.keys, seeds_, drawn_ + r * groups_);
      }
    }
    // Local copies, because GCC would load members again after each store.
    const std::int64_t words = words_, drawn_row = column ? 0 : groups_;
    const std::uint8_t* drawn = drawn_;
    std::uint64_t* kept = kept_;
    for (std::int64_t r = 0; r < rows; ++r, kept += words, drawn += drawn_row) {
      const std::uint64_t* const before = some_forbidden_ ? allowed(b, h, first + r, kept) : all_;
      const bool any = drop.threshold ? without(before, drawn, words, kept) : any_of(kept, words);
      attends_[r] = any || fill_empty_row(b, h, first + r, kept);
    }
  }

  // Returns whether the probabilities of query `r` of the block are a softmax. Otherwise they are constant (EmptyRow):
  // constant(r) for each kept key. If DropKey has dropped all keys and the rule is `zero`, or if no key is allowed, the
  // row keeps no key.
  bool attends(std::int64_t r) const { return attends_[r] != 0; }
  float constant(std::int64_t r) const {
    const std::uint64_t* const bits = kept_ + r * words_;
    int count = 0;
    for (std::int64_t w = 0; w < words_; ++w) count += std::popcount(bits[w]);
    return count > 0 ? 1 / static_cast<float>(count) : 0;
  }
  // Masks of the keys for query `r` of the block. kept: the keys of the row, after the rule for empty rows; undropped:
  // the keys that attention dropout keeps.
  KeyBitsRow kept(std::int64_t r) const { return {masked_ ? kept_ + r * words_ : all_}; }
  KeyBitsRow undropped(std::int64_t r) const { return {undropped_ + r * words_}; }

 private:
  // Writes the keys that the keep mask and causal attention allow for a query.
  const std::uint64_t* allowed(std::int64_t b, std::int64_t h, std::int64_t query, std::uint64_t* kept) const {
    if (call_.keep.defined())
      keep_bits(call_.keep.data<std::uint8_t>() + ((b * call_.heads + h) * call_.queries + query) * call_.keys, kept);
    else
      std::copy_n(all_, words_, kept);
    if (call_.causal) keep_up_to(call_.last_key(query), kept);
    return kept;
  }
  // Applies the rule for rows without a kept key. Returns whether the row attends.
  bool fill_empty_row(std::int64_t b, std::int64_t h, std::int64_t query, std::uint64_t* kept) const {
    if (call_.empty == EmptyRow::zero || !any_of(allowed(b, h, query, kept), words_)) return false;
    return call_.empty == EmptyRow::keep_all;
  }
  static bool any_of(const std::uint64_t* bits, std::int64_t words) {
    return std::any_of(bits, bits + words, [](std::uint64_t word) { return word != 0; });
  }
  // Sets the counters for `rows` rows of draws, beginning with query `first`. All samples and heads use the same
  // counters.
  void count(std::int64_t first, std::int64_t rows) {
    if (first == counted_from_ && rows <= counted_rows_) return;
    counted_from_ = first;
    counted_rows_ = rows;
    // Whole vectors, which write beyond the end of a row. The next row follows.
    const hn::ScalableTag<std::uint32_t> u32;
    constexpr std::int64_t lanes = HWY_LANES(std::uint32_t);
    const std::int64_t groups = groups_;
    const auto lane = hn::Iota(u32, 0);
    std::uint32_t* row = counters_;
    for (std::int64_t r = 0; r < rows; ++r, row += groups)
      for (std::int64_t g = 0; g < groups; g += lanes)
        hn::StoreU(hn::Add(hn::Set(u32, static_cast<std::uint32_t>((first + r) << 16 | g)), lane), u32, row + g);
  }
  // Sets `to` to `from` without the drawn bits. Also reads drawn bits after the end of the row, but `from` is 0 at
  // these places. Returns whether any bit is left.
  static bool without(const std::uint64_t* from, const std::uint8_t* drawn, std::int64_t words, std::uint64_t* to) {
    std::uint64_t left = 0;
    for (std::int64_t w = 0; w < words; ++w) {
      std::uint64_t dropped = 0;
      std::memcpy(&dropped, drawn + 8 * w, sizeof dropped);
      left |= to[w] = from[w] & ~dropped;
    }
    return left != 0;
  }
  void keep_bits(const std::uint8_t* keep, std::uint64_t* bits) const {
    for (std::int64_t w = 0; w < words_; ++w) {
      bits[w] = 0;
      const std::int64_t n = std::min<std::int64_t>(64, call_.keys - 64 * w);
      for (std::int64_t j = 0; j < n; ++j) bits[w] |= std::uint64_t{keep[64 * w + j] != 0} << j;
    }
  }
  // Clears the bits after bit number `last`.
  void keep_up_to(std::int64_t last, std::uint64_t* bits) const {
    for (std::int64_t w = 0; w < words_; ++w) {
      const std::int64_t kept = std::clamp<std::int64_t>(last + 1 - 64 * w, 0, 64);
      if (kept < 64) bits[w] &= (std::uint64_t{1} << kept) - 1;
    }
  }

  const AttentionCall& call_;
  std::int64_t words_, groups_;
  bool some_forbidden_, masked_;  // whether only some keys are allowed; whether only some are kept
  std::int64_t counted_from_ = 0, counted_rows_ = 0;
  std::uint64_t *all_, *kept_, *undropped_;
  std::uint32_t* counters_;
  std::uint8_t *drawn_, *seeds_, *attends_;
};

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
