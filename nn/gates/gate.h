// The gate interface. A gate defines how a residual method adds the value of a branch (attention or MLP) to the stream.
// A custom method derives a gate from Gate or ScaleGate, and is registered with register_method()
// (nn/gates/method.h).
//
// For each of its branches, a block computes (nn/blocks/junction.cpp)
//   u = gate.read(stream)         followed by the block's norm if the norm is pre
//   f = branch(u)
//   gate.join(stream, f, norm)    norm is null unless the block's norm is post
// For most methods, the result is y = combine(x, f) or y = norm(combine(x, f)). A gate must implement combine(). A gate
// can also change the initial weights of the branch, the computation inside the branch, and the tensors that the stream
// carries.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "autograd/ops.h"
#include "nn/layers/branch.h"
#include "nn/layers/stream.h"

namespace plumb::nn {

// Base class of all gates. A derived gate must override combine(); every other function has a default. A derived gate
// registers its parameters with parameter() (nn/module.h). Parameters that scale the branch or the stream must have
// Role::gate. In the shapes below, B is the number of samples, T the number of tokens, and D the width of the stream.
// The constructor's `type_name` is the gate's name in messages while the gate has no parent; the default is the name of
// the class.
class Gate : public Module {
 public:
  explicit Gate(const std::string& type_name = "") : Module(type_name) {}

  // Returns the stream after the residual sum and before any norm. `skip` [B, T, D] is the stream before the branch;
  // `branch` [B, T, D] is the value of the branch. The result must have the shape and dtype of `skip`.
  virtual Tensor combine(const Tensor& skip, const Tensor& branch) const = 0;
  // Returns combine(skip, branch), in which the contribution of the branch to sample b is multiplied by row_scale[b];
  // row_scale is [B] (stochastic depth). The default is skip + row_scale (combine(skip, branch) - skip). With this
  // default, the result for a dropped sample, whose factor is 0, is `skip`. If the result for a dropped sample must be
  // another value, such as a multiple of `skip`, override this function.
  virtual Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const;

  // Returns the term that the gate adds to the kept part of the stream, in the shape of combine(). Signal probes
  // measure this term. The default, combine(skip, branch) - skip, is correct for every formula up to the rounding of
  // `skip`. A gate that adds a term to `skip` should return this term directly, because the direct result is exact even
  // for tiny terms.
  virtual Tensor added(const Tensor& skip, const Tensor& branch) const;
  // Returns the factors that the gate applies to this stream, as it is before the junction, in any shape; undefined if
  // the gate has no factors. Signal probes measure these factors. The default is the concatenation of the gate's
  // parameters of Role::gate. The default is undefined if one of these parameters is a matrix: such a gate computes its
  // factors from the stream, and should override this function to return the factors.
  virtual Tensor values(const Stream& before) const;

  // Changes the initial weights of the branch: scales their declared Init (Linear::scale_init(),
  // Branch::scale_value_path()). The block calls init_branch() once, in the constructor of the block, before the model
  // is initialised.
  virtual void init_branch(Branch&) {}
  // Returns the hooks that change the computation inside the branch in this pass. With the default, null, the branch
  // uses its fused path.
  virtual std::unique_ptr<BranchHooks> inside(Stream&) const { return nullptr; }

  // Returns the input of the branch before the norm, [B, T, D]. The default is stream.x.
  virtual Tensor read(const Stream& stream) const { return stream.x; }
  // Joins the value of the branch to the stream: computes the residual sum and the norm after the sum. The default sets
  // stream.x to norm(combine(stream.x, branch)), or norm(combine_scaled(...)) if row_scale is defined. `norm` is null
  // unless the block's norm is post. `row_scale` [B] is undefined if the factor of every sample is 1. Throws Error if
  // the result of combine() does not have the shape and dtype of the stream.
  virtual void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const;

  // If the formula is exactly y = skip + scale * branch, a gate can return the scale here: [1], [D] ([D, 1, 1] for
  // images), or an undefined tensor for scale 1. The block then fuses the residual sum with the last product of the
  // branch, and does not call combine() and join() (except in a calibrate() pass). With the default, nullopt, the block
  // calls join().
  virtual std::optional<Tensor> plain_scale() const { return std::nullopt; }
  // Returns the parameters that multiply the branch or the skip. If all these parameters are 1, the gate must be a
  // plain sum. If a file of trained weights lacks these parameters, load_pretrained() can add the parameters with the
  // value 1. The default is the scale of plain_scale().
  virtual Tensors scales() const {
    const std::optional<Tensor> scale = plain_scale();
    return scale && scale->defined() ? Tensors{*scale} : Tensors();
  }

  // Sets the initial values that depend on data, from the skip input and the value of the branch at this junction. The
  // block calls this function only in a pass of nn::calibrate(), once for each junction, in the order of the forward
  // pass. `carried` is a value from the previous gate for the next gate; it is empty at the first gate.
  virtual void calibrate(const Tensor& /*skip*/, const Tensor& /*branch*/, std::optional<double>& /*carried*/) const {}

 protected:
  // Returns combine_scaled() if `row_scale` is defined, and combine() otherwise.
  Tensor mix(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
    return row_scale.defined() ? combine_scaled(skip, branch, row_scale) : combine(skip, branch);
  }
  // Overwrites the values of a parameter. Implementations of calibrate() use this function.
  static void set(const Tensor& parameter, const Tensor& value) { copy_into(value.array(), parameter.array()); }
};

// Returns a parameter [D] with one number per channel in the shape in which it broadcasts over a stream of this layout:
// [D] for tokens, [D, 1, 1] for images. A parameter [1] and an undefined tensor stay as they are.
Tensor per_channel(const Tensor& parameter, Layout layout);

// The gate y = skip + scale * branch, fused with the last product of the branch. `scale` is [1], [D] with one number
// per channel, or undefined for a plain sum. The functions that define the formula are final. A gate with another
// formula must derive from Gate.
class ScaleGate : public Gate {
 public:
  explicit ScaleGate(Tensor scale = {}, const std::string& type_name = "", Layout layout = Layout::tokens)
      : Gate(type_name), scale_(std::move(scale)), layout_(layout) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const final { return gated_residual(skip, branch, scale()); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const final {
    return gated_residual(skip, branch, scale(), row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const final { return scale_.defined() ? scale() * branch : branch; }
  void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const final {
    Gate::join(stream, branch, row_scale, norm);
  }
  std::optional<Tensor> plain_scale() const final { return scale(); }
  Tensors scales() const override { return scale_.defined() ? Tensors{scale_} : Tensors(); }

 protected:
  // Returns the scale in the shape that broadcasts over the stream.
  Tensor scale() const { return per_channel(scale_, layout_); }
  Tensor scale_;
  Layout layout_;
};

// Throws Error ("[gate] expected combine to return ...") unless `combined` has the shape and dtype of `skip`.
void check_joined(const Tensor& skip, const Tensor& combined);

// Runs one forward pass over x, in evaluation mode and without a graph. In this pass, Gate::calibrate() of each gate
// sets the initial values that depend on data (methods admin_profile and act_norm). A model without such gates does not
// change. Observers of blocks are not called. Trainers call this function with their first batch.
void calibrate(Layer& model, const Tensor& x);

namespace detail {
// Returns the carried value of the calibrate() pass that runs on this thread, or null outside such a pass.
std::optional<double>* calibrating();
}  // namespace detail

}  // namespace plumb::nn
