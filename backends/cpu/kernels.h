// Declarations of the cpu kernels; what each means is written at the table, core/backend.h. f32, with the mixtures with bf16 that the
// table allows except in products: backend.cpp sends the rest to the reference kernels.
//
// Promise: for equal arguments the bits do not depend on the number of threads, except where oneDNN's do (onednn.h). They do depend
// on the instruction set.
#pragma once

#include "core/backend.h"

namespace plumb::cpu {

// elementwise.cpp
void fill(double value, const Array& y);
void cast(const Array& x, const Array& y);
void unary(Unary op, double parameter, const Array& x, const Array& y);
void binary(Binary op, const Array& a, const Array& b, const Array& y);
void where(const Array& mask, const Array& a, const Array& b, const Array& y);
void broadcast(const Array& x, const Array& y);
void reduce(Reduce op, const Array& x, const Array& y);

// movement.cpp
void permute(const Array& x, std::span<const int> axes, const Array& y);
void slice(const Array& x, int axis, std::int64_t start, const Array& y);
void assign_slice(const Array& x, int axis, std::int64_t start, const Array& y);
void gather(const Array& x, const Array& index, const Array& y);
void scatter_add(const Array& x, const Array& index, const Array& y);

// matmul.cpp
void matmul(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Array& y);

// linear_simd.cpp
void linear_forward(const LinearCall& call, const Array& x, const Array& w, const Array& b, const Array& y);
void linear_backward(const LinearCall& call, const Array& dy, const Array& x, const Array& w, const Array& b, const LinearGradients& gradients);

// conv2d.cpp
void conv2d_forward(const Array& x, const Array& w, const Array& b, const Conv2dOptions& options, const Array& y);
void conv2d_backward(const Array& dy, const Array& x, const Array& w, const Conv2dOptions& options, const Array& dx, const Array& dw,
                     const Array& db);

// gelu.cpp
void gelu_forward(Gelu form, const Array& x, const Array& b, const Array& y, const Array& dgelu);

// softmax.cpp
void softmax_forward(const Array& x, const Array& y);
void softmax_backward(const Array& dy, const Array& y, const Array& dx);
void log_softmax_forward(const Array& x, const Array& y);
void log_softmax_backward(const Array& dy, const Array& y, const Array& dx);
void cross_entropy_forward(const Array& x, const Array& labels, const Array& target, double smoothing, const Array& loss, const Array& lse);
void cross_entropy_backward(const Array& dloss, const Array& x, const Array& labels, const Array& target, double smoothing, const Array& lse,
                            const Array& dx);

// norm.cpp
void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Array& y, const Array& mean, const Array& rstd);
void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Array& dx,
                         const Array& dgamma, const Array& dbeta);
void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Array& y, const Array& rstd);
void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Array& dx, const Array& dgamma);

// dyt.cpp
void dyt_forward(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Array& y);
void dyt_backward(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Array& dx, const Array& dalpha, const Array& dgamma,
                  const Array& dbeta);

// attention.cpp
void attention_forward(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const Heads& out, const Array& sums);
void attention_backward(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v, const Array& sums,
                        const Heads& dq, const Heads& dk, const Heads& dv);

// residual.cpp
void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first_element, const Array& y);
void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale, const Array& y);
void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale, const Array& dbranch,
                             const Array& dgate);

// optimizer.cpp
void adamw(std::span<const AdamWUpdate> updates);
void sgd(const SgdStep& s, const Array& gradient, const Array& parameter, const Array& velocity);
void adagrad(const AdagradStep& s, const Array& gradient, const Array& parameter, const Array& squares);
double sum_of_squares(std::span<const Array> arrays);

}  // namespace plumb::cpu
