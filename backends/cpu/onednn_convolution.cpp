// Convolutions by oneDNN.
#include <array>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn_primitives.h"
#include "backends/cpu/scratch.h"
#include "core/error.h"

namespace plumb::cpu {
namespace {

using namespace onednn;

// Create primitive descriptors for oneDNN 2 and 3. oneDNN 3 has merged the operation descriptor into the primitive
// descriptor. A backward primitive needs `hint`, the descriptor of the forward primitive.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc primitive_descriptor(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments...};
#else
  return {typename Primitive::desc(arguments...), engine()};
#endif
}
template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_descriptor(const Hint& hint, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., hint};
#else
  return {typename Primitive::desc(arguments...), engine(), hint};
#endif
}

enum class Pass { forward, data, weights };  // the passes that compute y, dx and dw

struct ConvolutionKey {
  Pass pass;
  Convolution extents;
  bool bias;

  bool operator==(const ConvolutionKey&) const = default;
  std::size_t hash() const {
    const Convolution& c = extents;
    return hash_of({static_cast<std::int64_t>(pass), bias, c.samples, c.channels, c.height, c.width, c.filters,
                    c.kernel_height, c.kernel_width, c.stride, c.padding});
  }
};

// One pass of a convolution on one thread. oneDNN chooses its fastest layouts (`any`). If an operand has another
// layout, the operand is reordered before the pass. If the result has another layout, the result is reordered after the
// pass.
class ConvolutionPass {
 public:
  explicit ConvolutionPass(const ConvolutionKey& key) {
    using dnnl::convolution_backward_data, dnnl::convolution_backward_weights, dnnl::convolution_forward;
    const Convolution& c = key.extents;
    const Dims x{c.samples, c.channels, c.height, c.width}, w{c.filters, c.channels, c.kernel_height, c.kernel_width},
        y{c.samples, c.filters, c.out_height(), c.out_width()}, strides{c.stride, c.stride},
        padding{c.padding, c.padding};
    const auto any = [](const Dims& dims) {
      return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    };
    const auto kind =
        key.pass == Pass::forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::memory::desc bias({c.filters}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x);
    const auto forward = key.bias ? primitive_descriptor<convolution_forward>(kind, direct, any(x), any(w), bias,
                                                                              any(y), strides, padding, padding)
                                  : primitive_descriptor<convolution_forward>(kind, direct, any(x), any(w), any(y),
                                                                              strides, padding, padding);
    switch (key.pass) {
      case Pass::forward:
        primitive_ = convolution_forward(forward);
        if (key.bias) bias_ = arguments_[DNNL_ARG_BIAS] = dnnl::memory(bias, engine(), nullptr);
        operands_ = {Operand(DNNL_ARG_SRC, x, forward.src_desc()), Operand(DNNL_ARG_WEIGHTS, w, forward.weights_desc()),
                     Operand(DNNL_ARG_DST, y, forward.dst_desc())};
        break;
      case Pass::data: {
        const auto pd = backward_descriptor<convolution_backward_data>(forward, direct, any(x), any(w), any(y), strides,
                                                                       padding, padding);
        primitive_ = convolution_backward_data(pd);
        operands_ = {Operand(DNNL_ARG_DIFF_DST, y, pd.diff_dst_desc()), Operand(DNNL_ARG_WEIGHTS, w, pd.weights_desc()),
                     Operand(DNNL_ARG_DIFF_SRC, x, pd.diff_src_desc())};
        break;
      }
      case Pass::weights: {
        const auto pd = backward_descriptor<convolution_backward_weights>(forward, direct, any(x), any(w), any(y),
                                                                          strides, padding, padding);
        primitive_ = convolution_backward_weights(pd);
        operands_ = {Operand(DNNL_ARG_SRC, x, pd.src_desc()), Operand(DNNL_ARG_DIFF_DST, y, pd.diff_dst_desc()),
                     Operand(DNNL_ARG_DIFF_WEIGHTS, w, pd.diff_weights_desc())};
        break;
      }
    }
    for (Operand& o : operands_) arguments_[o.argument] = o.inner;
  }

  // Runs the pass for two operands and a result, in the order of `operands_`.
  void run(const OneDnnCall& call, const float* first, const float* second, const float* bias, float* result) {
    auto& [a, b, y] = operands_;
    a.plain.set_data_handle(const_cast<float*>(first));
    b.plain.set_data_handle(const_cast<float*>(second));
    y.plain.set_data_handle(result);
    if (bias) bias_.set_data_handle(const_cast<float*>(bias));
    const Scratch rooms[] = {Scratch(a.room()), Scratch(b.room()), Scratch(y.room())};
    for (std::size_t i = 0; i < operands_.size(); ++i)
      operands_[i].inner.set_data_handle(operands_[i].moved ? rooms[i].data() : operands_[i].plain.get_data_handle());
    for (Operand* o : {&a, &b})
      if (o->moved) o->to_inner.execute(call.stream(), o->plain, o->inner);
    primitive_.execute(call.stream(), arguments_);
    if (y.moved) y.to_plain.execute(call.stream(), y.inner, y.plain);
  }

 private:
  struct Operand {
    int argument = 0;
    bool moved = false;         // whether the layout of the primitive differs from the layout of the caller
    dnnl::memory plain, inner;  // plain: the row-major array of the caller; inner: the array in the primitive's layout
    dnnl::reorder to_inner, to_plain;

    Operand() = default;
    Operand(int argument_index, const Dims& dims, const dnnl::memory::desc& wanted) : argument(argument_index) {
      const dnnl::memory::desc row_major(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::abcd);
      moved = wanted != row_major;
      plain = dnnl::memory(row_major, engine(), nullptr);
      inner = dnnl::memory(wanted, engine(), nullptr);
      if (moved) to_inner = dnnl::reorder(plain, inner), to_plain = dnnl::reorder(inner, plain);
    }
    std::int64_t room() const {
      return moved ? static_cast<std::int64_t>(inner.get_desc().get_size() / sizeof(float)) : 0;
    }
  };

  dnnl::primitive primitive_;
  dnnl::memory bias_;
  std::array<Operand, 3> operands_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void run_convolution(Pass pass, const Convolution& c, const float* first, const float* second, const float* bias,
                     float* result) {
  const OneDnnCall call;
  try {
    made<ConvolutionPass>(ConvolutionKey{pass, c, bias != nullptr}).run(call, first, second, bias, result);
  } catch (const dnnl::error& e) {
    fail(fmt::format(
        "[conv2d] oneDNN refused {} images [{}, {}, {}] with filters [{}, {}, {}, {}], stride {}, padding {}: {}",
        c.samples, c.channels, c.height, c.width, c.filters, c.channels, c.kernel_height, c.kernel_width, c.stride,
        c.padding, e.what()));
  }
}

}  // namespace

void convolve(const Convolution& c, const float* x, const float* w, const float* bias, float* y) {
  run_convolution(Pass::forward, c, x, w, bias, y);
}
void convolve_to_data(const Convolution& c, const float* dy, const float* w, float* dx) {
  run_convolution(Pass::data, c, dy, w, nullptr, dx);
}
void convolve_to_weights(const Convolution& c, const float* x, const float* dy, float* dw) {
  run_convolution(Pass::weights, c, x, dy, nullptr, dw);
}

}  // namespace plumb::cpu
