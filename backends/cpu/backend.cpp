// The cpu backend's table: f32 kernels of its own, the reference kernels for the rest.
#include "core/backend.h"

#include <fstream>

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/route.h"

namespace plumb {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

const Kernels& cpu_kernels() {
  using namespace cpu;
  static const Kernels table = [] {
    choose_instruction_set();
    return Kernels{
        .fill = f32<&Kernels::fill, cpu::fill>,
        .cast = cpu::cast,
        .unary = f32<&Kernels::unary, cpu::unary>,
        .binary = f32_or_bf16<&Kernels::binary, cpu::binary>,
        .where = f32<&Kernels::where, cpu::where>,
        .broadcast = f32<&Kernels::broadcast, cpu::broadcast>,
        .reduce = f32<&Kernels::reduce, cpu::reduce>,
        .matmul = f32<&Kernels::matmul, cpu::matmul>,
        .permute = cpu::permute,
        .slice = cpu::slice,
        .assign_slice = cpu::assign_slice,
        .gather = cpu::gather,
        .scatter_add = f32<&Kernels::scatter_add, cpu::scatter_add>,
        .linear_forward = f32_or_bf16<&Kernels::linear_forward, cpu::linear_forward>,
        .linear_backward = f32_or_bf16<&Kernels::linear_backward, cpu::linear_backward>,
        .conv2d_forward = f32<&Kernels::conv2d_forward, cpu::conv2d_forward>,
        .conv2d_backward = f32<&Kernels::conv2d_backward, cpu::conv2d_backward>,
        .gelu_forward = f32<&Kernels::gelu_forward, cpu::gelu_forward>,
        .softmax_forward = f32<&Kernels::softmax_forward, cpu::softmax_forward>,
        .softmax_backward = f32<&Kernels::softmax_backward, cpu::softmax_backward>,
        .log_softmax_forward = f32<&Kernels::log_softmax_forward, cpu::log_softmax_forward>,
        .log_softmax_backward = f32<&Kernels::log_softmax_backward, cpu::log_softmax_backward>,
        .layer_norm_forward = f32<&Kernels::layer_norm_forward, cpu::layer_norm_forward>,
        .layer_norm_backward = f32<&Kernels::layer_norm_backward, cpu::layer_norm_backward>,
        .rms_norm_forward = f32<&Kernels::rms_norm_forward, cpu::rms_norm_forward>,
        .rms_norm_backward = f32<&Kernels::rms_norm_backward, cpu::rms_norm_backward>,
        .dyt_forward = f32<&Kernels::dyt_forward, cpu::dyt_forward>,
        .dyt_backward = f32<&Kernels::dyt_backward, cpu::dyt_backward>,
        .attention_forward = f32_or_bf16<&Kernels::attention_forward, cpu::attention_forward>,
        .attention_backward = f32_or_bf16<&Kernels::attention_backward, cpu::attention_backward>,
        .cross_entropy_forward = f32<&Kernels::cross_entropy_forward, cpu::cross_entropy_forward>,
        .cross_entropy_backward = f32<&Kernels::cross_entropy_backward, cpu::cross_entropy_backward>,
        .dropout = f32<&Kernels::dropout, cpu::dropout>,
        .gated_residual_forward = f32<&Kernels::gated_residual_forward, cpu::gated_residual_forward>,
        .gated_residual_backward = f32<&Kernels::gated_residual_backward, cpu::gated_residual_backward>,
        .adamw = f32<&Kernels::adamw, cpu::adamw>,
        .sgd = f32<&Kernels::sgd, cpu::sgd>,
        .adagrad = f32<&Kernels::adagrad, cpu::adagrad>,
        .sum_of_squares = f32<&Kernels::sum_of_squares, cpu::sum_of_squares>,
    };
  }();
  return table;
}

std::string cpu_description() {
  return fmt::format("{}, {}, {} threads, {}", processor_name(), cpu::instruction_set(), num_threads(), cpu::onednn_version());
}

}  // namespace plumb
