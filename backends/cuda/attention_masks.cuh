// The masks of attention, and the launch of kernels with one warp per query. The warp of a query draws the query's mask
// in shared memory.
#pragma once

#include "backends/cuda/rows.cuh"

namespace plumb::cuda {

// The fields of an AttentionCall that the kernels use.
template <class T>
struct Call {
  std::int64_t batch, heads, queries, keys, head_dim;
  T scale, survivors;  // survivors: 1 / (1 - p) of attention dropout, or 0 if p = 1
  const std::uint8_t* keep;
  bool causal;
  KeyMask drop_key;
  AttentionDrop dropout;
  EmptyRow empty;
  std::uint32_t step, first_sample;
};

// The memory of one warp for one query's row, in shared memory.
template <class T>
struct RowMemory {
  T* p;                             // [M]: scores, later probabilities
  std::uint8_t *seeds, *kept, *on;  // [M] each; on: the keys that are not dropped after the softmax
};

// Returns the bytes of a RowMemory for M = `keys`, rounded up to a multiple of 16.
template <class T>
__host__ __device__ constexpr std::int64_t row_bytes(std::int64_t keys) {
  return (keys * (static_cast<std::int64_t>(sizeof(T)) + 3) + 15) / 16 * 16;
}

// Returns the bytes of two arrays [queries, keys] of one head, rounded up to a multiple of 16.
template <class T>
__host__ __device__ constexpr std::int64_t head_bytes(std::int64_t queries, std::int64_t keys) {
  return (2 * queries * keys * static_cast<std::int64_t>(sizeof(T)) + 15) / 16 * 16;
}

// Returns the row of this warp. The rows of all warps start `before` bytes into shared memory. `before` must be a
// multiple of 16.
template <class T>
__device__ __forceinline__ RowMemory<T> row_memory(std::int64_t keys, std::int64_t before = 0) {
  char* const mine = shared<char>() + before + threadIdx.x / 32 * row_bytes<T>(keys);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(mine + keys * static_cast<std::int64_t>(sizeof(T)));
  return {reinterpret_cast<T*>(mine), bytes, bytes + keys, bytes + 2 * keys};
}

// Returns whether a dropped block or cross around one of the seeds covers cell (i, j) of the token grid.
__device__ __forceinline__ bool dropped_by(const KeyMask& drop, const std::uint8_t* seeds, std::int64_t i,
                                           std::int64_t j) {
  const std::int64_t height = drop.grid.height, width = drop.grid.width, reach = drop.window / 2;
  bool dropped = false;
  if (drop.shape == DropShape::block) {
    for (std::int64_t a = max(i - reach, reach); a <= min(i + reach, height - 1 - reach); ++a)
      for (std::int64_t b = max(j - reach, reach); b <= min(j + reach, width - 1 - reach); ++b)
        dropped |= seeds[a * width + b] != 0;
  } else {
    for (std::int64_t a = max(i - reach, std::int64_t{0}); a <= min(i + reach, height - 1); ++a)
      for (std::int64_t b = 0; b < width; ++b) dropped |= seeds[a * width + b] != 0;
    for (std::int64_t b = max(j - reach, std::int64_t{0}); b <= min(j + reach, width - 1); ++b)
      for (std::int64_t a = 0; a < height; ++a) dropped |= seeds[a * width + b] != 0;
  }
  return dropped;
}

// Sets flags[j] = 1 for each key j whose draw is below the threshold, and flags[j] = 0 for the other keys.
__device__ __forceinline__ void draw_row(std::uint64_t key, std::uint32_t step, Purpose purpose,
                                         std::uint32_t sample_head, std::uint32_t query, std::uint32_t threshold,
                                         std::int64_t keys, std::uint8_t* flags) {
  for (std::int64_t group = lane(); group * 8 < keys; group += 32) {
    const Draw d = attention_draw(key, step, purpose, sample_head, query, static_cast<std::uint32_t>(group));
    for (std::int64_t j = group * 8; j < min(group * 8 + 8, keys); ++j)
      flags[j] = draw16(d, static_cast<int>(j % 8)) < threshold;
  }
}

// Writes row.kept and row.on for query n of head h of sample b. If the query has no kept key and the rule (EmptyRow)
// makes its probabilities constant, or if it has no allowed key, writes the probabilities to row.p and returns false.
// Otherwise returns true. All lanes of a warp must call draw_masks().
template <class T>
__device__ bool draw_masks(const Call<T>& call, std::int64_t b, std::int64_t h, std::int64_t n,
                           const RowMemory<T>& row) {
  const std::int64_t M = call.keys, last = call.causal ? n + M - call.queries : M - 1;
  const std::uint8_t* const allowed = call.keep ? call.keep + ((b * call.heads + h) * call.queries + n) * M : nullptr;
  const auto sample = static_cast<std::uint32_t>(call.first_sample + b), heads = static_cast<std::uint32_t>(call.heads);
  if (call.dropout.threshold)
    draw_row(call.dropout.random_key, call.step, Purpose::dropout, sample * heads + static_cast<std::uint32_t>(h),
             static_cast<std::uint32_t>(n), call.dropout.threshold, M, row.on);
  const KeyMask& drop = call.drop_key;
  if (drop.threshold)
    draw_row(drop.random_key, call.step, Purpose::drop_key,
             sample * heads + (drop.sharing == DropSharing::heads ? 0 : static_cast<std::uint32_t>(h)),
             drop.sharing == DropSharing::column ? 0 : static_cast<std::uint32_t>(n), drop.threshold, M, row.seeds);
  __syncwarp();
  const std::int64_t off_grid = M - drop.grid.height * drop.grid.width;
  const auto may = [&](std::int64_t j) { return (!allowed || allowed[j]) && j <= last; };
  float kept_any = 0, allowed_count = 0;  // a float counts keys exactly, because there are fewer than 2^24
  for (std::int64_t j = lane(); j < M; j += 32) {
    bool dropped = false;
    if (drop.threshold && drop.shape == DropShape::plain) dropped = row.seeds[j] != 0;
    if (drop.threshold && drop.shape != DropShape::plain && j >= off_grid)
      dropped =
          dropped_by(drop, row.seeds + off_grid, (j - off_grid) / drop.grid.width, (j - off_grid) % drop.grid.width);
    const bool kept = may(j) && !dropped;
    row.kept[j] = kept;
    row.on[j] = !call.dropout.threshold || !row.on[j];
    kept_any += kept, allowed_count += may(j);
  }
  kept_any = warp_sum(kept_any), allowed_count = warp_sum(allowed_count);
  if (kept_any == 0) {
    if (call.empty != EmptyRow::keep_all || allowed_count == 0) {
      for (std::int64_t j = lane(); j < M; j += 32)
        row.p[j] = call.empty == EmptyRow::paper && may(j) ? 1 / static_cast<T>(allowed_count) : T{0};
      __syncwarp();
      return false;
    }
    for (std::int64_t j = lane(); j < M; j += 32) row.kept[j] = may(j);
  }
  return true;
}

// Turns the scores in row.p into probabilities over the kept keys. The scores of other keys are not read. Returns the
// largest score, and the sum of the exponentials relative to the largest score. All lanes of a warp must call
// softmax_over_kept().
template <class T>
struct Softmax {
  T top, sum;
};
template <class T>
__device__ Softmax<T> softmax_over_kept(std::int64_t M, const RowMemory<T>& row) {
  T top = -INFINITY, sum = 0;
  for (std::int64_t j = lane(); j < M; j += 32)
    if (row.kept[j]) top = row.p[j] > top || row.p[j] != row.p[j] ? row.p[j] : top;
  for (int m = 16; m > 0; m /= 2) {
    const T other = __shfl_xor_sync(~0u, top, m);
    top = other > top || other != other ? other : top;
  }
  for (std::int64_t j = lane(); j < M; j += 32) {
    row.p[j] = row.kept[j] ? exp(row.p[j] - top) : T{0};
    sum += row.p[j];
  }
  sum = warp_sum(sum);
  for (std::int64_t j = lane(); j < M; j += 32) row.p[j] /= sum;
  __syncwarp();
  return {top, sum};
}

// The query of this warp, in a grid that launch_queries() started. exists() is false for the warps after the last
// query.
struct Query {
  std::int64_t b, h, n, row;  // row: the index in [B, H, N]
};
template <class T>
__device__ __forceinline__ Query warp_query(const Call<T>& call) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  return {row / call.queries / call.heads, row / call.queries % call.heads, row % call.queries, row};
}
template <class T>
__device__ __forceinline__ bool exists(const Call<T>& call, const Query& query) {
  return query.row < call.batch * call.heads * call.queries;
}

template <class T>
Call<T> call_of(const AttentionCall& c) {
  return {c.batch,
          c.heads,
          c.queries,
          c.keys,
          c.head_dim,
          static_cast<T>(c.scale),
          c.dropout.threshold < 65536 ? static_cast<T>(1 / (1 - c.dropout.threshold / 65536.0)) : T{0},
          pointer<std::uint8_t>(c.keep),
          c.causal,
          c.drop_key,
          c.dropout,
          c.empty,
          c.step,
          c.first_sample};
}

constexpr std::int64_t attention_room = 48 << 10;  // bytes of shared memory that a block gets without opt-in

// Returns whether a row fits into shared memory. The limit is about 7,000 keys in f32.
inline bool row_fits(const AttentionCall& c, DType dtype) {
  return (dtype == DType::f64 ? row_bytes<double>(c.keys) : row_bytes<float>(c.keys)) <= attention_room;
}

// Launches a kernel with one warp per query. A block has four warps. If the rows of four warps do not fit into shared
// memory, a block has fewer warps.
template <class T, class... Parameters, class... Arguments>
void launch_queries(const AttentionCall& c, void (*kernel)(Parameters...), Arguments... arguments) {
  const std::int64_t rows = c.batch * c.heads * c.queries, bytes = row_bytes<T>(c.keys);
  const std::int64_t warps = std::min<std::int64_t>(4, attention_room / bytes);
  count_bytes(c.keep.defined() ? c.keep.numel() : 0);
  if (rows > 0)
    launch(kernel, dim3{static_cast<unsigned>((rows + warps - 1) / warps), 1, 1},
           dim3{static_cast<unsigned>(32 * warps), 1, 1}, static_cast<std::size_t>(warps * bytes), arguments...);
}

}  // namespace plumb::cuda
