#include "nn/branch.h"

#include "autograd/ops.h"
#include "core/scoped_value.h"

namespace plumb::nn {
namespace {

const Place nowhere;

Tensor normed(const Layer* norm, const Tensor& x) { return norm ? (*norm)(x) : x; }

}  // namespace

Tensor Branch::operator()(const Tensor& x, const Place& place) const {
  // Hooks see the branch without its neighbours.
  const Place alone{.inside = place.inside};
  const Tensor u = hooked() ? normed(place.norm, x) : x;
  const ScopedValue current(place_, hooked() ? &alone : &place);
  entered_ = left_ = false;
  const Tensor y = (*this)(u);
  check(entered_ && left_,
        "[branch] expected {}'s forward() to begin with enter() and to end with leave(), which bring its norm and "
        "junction, got one without {}()",
        *path(), entered_ ? "leave" : "enter");
  return hooked() && place.junction ? join(place, y) : y;
}

Tensor Branch::join(const Place& place, const Tensor& f) const {
  if (place.value) *place.value = f.detach();
  const PathScope scope(place.junction->path);
  return gated_residual(place.junction->skip, f, place.junction->gate, place.junction->row_scale);
}

Tensor Branch::enter(const Linear& first, const Tensor& x, bool bf16_result) const {
  const Place& place = place_ ? *place_ : nowhere;
  entered_ = true;
  if (!place.inside) return first.after(place.norm, x, bf16_result);
  return place.inside->projected(first(place.inside->input(normed(place.norm, x))));
}

Tensor Branch::enter_gelu(const Linear& first, const Tensor& x, Gelu form) const {
  const Place& place = place_ ? *place_ : nowhere;
  entered_ = true;
  return place.inside ? gelu(enter(first, x), form) : first.gelu_after(place.norm, x, form, true);
}

Tensor Branch::leave(const Linear& last, const Tensor& h, const Layer* after) const {
  const Place& place = place_ ? *place_ : nowhere;
  left_ = true;
  const Tensor hidden = place.inside ? place.inside->hidden(h) : h;
  if (after) {
    const Tensor f = (*after)(last(hidden));
    return place.junction ? join(place, f) : f;
  }
  if (!place.junction) return last(hidden);
  if (last.hooked()) return join(place, last(hidden));
  if (place.value) {
    const NoGrad no_grad;
    *place.value = last(hidden.detach());
  }
  return last.joined(place.junction->skip, hidden, place.junction->gate, place.junction->row_scale);
}

}  // namespace plumb::nn
