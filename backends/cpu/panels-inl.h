// Products of many rows by one matrix: y = x B. B [K, N] is packed once into panels as wide as a register tile.
#if defined(PLUMB_CPU_PANELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_PANELS_INL
#undef PLUMB_CPU_PANELS_INL
#else
#define PLUMB_CPU_PANELS_INL
#endif

#include "backends/cpu/linear.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// The columns of B from `first` to `first + vectors * W - 1`, stored as [K, vectors * W]. Columns from N on are filled
// with zeros.
struct Panel {
  std::int64_t first, vectors;
};

// The panels of N columns. The panels are as wide as the best tile that divides the columns evenly.
struct PanelLayout {
  std::int64_t vectors, parts;

  explicit PanelLayout(std::int64_t N) : vectors((N + W - 1) / W) {
#if HWY_TARGET == HWY_AVX3
    const std::int64_t widest = vectors % 3 == 0 ? 3 : 4;
#else
    const std::int64_t widest = vectors % 3 == 0 ? 3 : 2;
#endif
    parts = (vectors + widest - 1) / widest;
  }
  Panel operator[](std::int64_t i) const {
    const std::int64_t first = vectors * i / parts;
    return {first * W, vectors * (i + 1) / parts - first};
  }
};

// The packing of a panel is split into pieces of at most `piece_rows` rows.
constexpr std::int64_t piece_rows = 64;
HWY_INLINE std::int64_t pieces(const PackedMatrix& b) {
  return PanelLayout(b.N).parts * ((b.K + piece_rows - 1) / piece_rows);
}

// Packs piece i of B. If `transposed`, B = w^T for w [N, K]. Otherwise B = w [K, N], and row k is multiplied by
// scale[k] if `scale` is given.
HWY_INLINE void pack_piece(const PackedMatrix& b, std::int64_t i) {
  const PanelLayout layout(b.N);
  const Panel panel = layout[i % layout.parts];
  const std::int64_t begin = i / layout.parts * piece_rows, end = std::min(b.K, begin + piece_rows);
  const std::int64_t width = panel.vectors * W, columns = std::min(width, b.N - panel.first);
  float* const to = b.panels + panel.first * b.K + begin * width;
  if (b.transposed) {
    if (columns < width) std::fill_n(to, (end - begin) * width, 0.0f);
    transpose(b.w + panel.first * b.K + begin, columns, end - begin, b.K, to, width);
    if (b.rounded)
      for (std::int64_t j = 0; j < (end - begin) * width; j += W)
        hn::StoreU(round_to_bf16(hn::LoadU(f32, to + j)), f32, to + j);
    return;
  }
  for (std::int64_t k = begin; k < end; ++k) {
    const float* const from = b.w + k * b.N + panel.first;
    float* const row = to + (k - begin) * width;
    const V s = set(b.scale ? b.scale[k] : 1.0f);
    std::int64_t j = 0;
    for_lanes(columns, [&](std::int64_t c, auto part) HWY_ATTR {
      const V v = hn::Mul(load(from + c, part), s);
      hn::StoreU(b.rounded ? round_to_bf16(v) : v, f32, row + c);
      j = c + W;
    });
    for (; j < width; j += W) hn::StoreU(zero(), f32, row + j);
  }
}

// Returns whether w already has the packed layout.
HWY_INLINE bool packed_already(const PackedMatrix& b) {
  return !b.transposed && !b.scale && !b.rounded && b.N % W == 0 && PanelLayout(b.N).parts == 1;
}

// Computes c [rows, N] = start + a B. `start` is null or one row of initial values, [N rounded up to whole vectors].
HWY_INLINE void multiply_panels(const PackedMatrix& b, const float* a, std::int64_t rows, const float* start,
                                float* c) {
  const PanelLayout layout(b.N);
  constexpr std::int64_t edge_rows = 12;
  for (std::int64_t i = 0; i < layout.parts; ++i) {
    const Panel panel = layout[i];
    Product p{.a = a,
              .a_row = b.K,
              .a_column = 1,
              .b = (b.panels ? b.panels : b.w) + panel.first * b.K,
              .b_row = panel.vectors * W,
              .c = c + panel.first,
              .c_row = b.N,
              .rows = rows,
              .K = b.K,
              .vectors = panel.vectors,
              .start = start ? start + panel.first : nullptr};
    const std::int64_t columns = b.N - panel.first;
    if (columns >= panel.vectors * W) {
      constexpr auto bytes = static_cast<std::int64_t>(sizeof(float));
      p.ahead[0] = {reinterpret_cast<const char*>(p.c), p.c_row * bytes, rows,
                    panel.vectors * W * bytes};  // the rows of c are prefetched just before their tile
      multiply(p);
      continue;
    }
    // The last columns do not fill a whole vector, so the results go through a buffer.
    HWY_ALIGN float edge[edge_rows * max_vectors * W];
    for (std::int64_t r = 0; r < rows; r += edge_rows) {
      Product q = p;
      q.rows = std::min(edge_rows, rows - r);
      q.a += r * b.K;
      q.c = edge;
      q.c_row = panel.vectors * W;
      multiply(q);
      for (std::int64_t e = 0; e < q.rows; ++e)
        for_lanes(columns, [&](std::int64_t j, auto part) HWY_ATTR {
          store(hn::LoadU(f32, edge + e * q.c_row + j), p.c + (r + e) * p.c_row + j, part);
        });
    }
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
