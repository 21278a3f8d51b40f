// Packs the matrix of a linear layer into the panels that products read.
#include "backends/cpu/linear.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linear_packing_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

bool PackedAlready(const PackedMatrix& b) { return packed_already(b); }
std::int64_t Pieces(const PackedMatrix& b) { return pieces(b); }
void PackPieces(const PackedMatrix& b, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) pack_piece(b, i);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(PackedAlready);
HWY_EXPORT(Pieces);
HWY_EXPORT(PackPieces);

Panels::Panels(PackedMatrix b) : b_(b), panels_(HWY_DYNAMIC_DISPATCH(PackedAlready)(b) ? 0 : packed_floats(b.K, b.N)) {
  if (HWY_DYNAMIC_DISPATCH(PackedAlready)(b)) return;
  b_.panels = panels_.data();
  const std::int64_t pieces = HWY_DYNAMIC_DISPATCH(Pieces)(b_);
  // Each thread packs at least 4096 elements. With fewer elements, another thread would cost more time than it saves.
  parallel_for(pieces, std::max<std::int64_t>(1, 4096 * pieces / std::max<std::int64_t>(1, b.K * b.N)),
               [&](std::int64_t begin, std::int64_t end) {
                 HWY_DYNAMIC_DISPATCH(PackPieces)
                 (b_, begin, end);
               });
}

}  // namespace plumb::cpu
#endif
