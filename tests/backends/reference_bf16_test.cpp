// Tests of the mixtures of f32 and bf16. The reference kernels read bf16 exactly, compute in f64 and round once.
// Therefore the results are the rounded results of the same call on f64 copies.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/backend.h"
#include "tests/backends/compare.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Call = std::function<void(const Kernels&, const std::vector<Array>& in, const Results& out)>;

void rounds_once(const char* name, const std::vector<Array>& inputs, const std::vector<Result>& wanted,
                 const Call& call) {
  std::vector<Array> wide;
  for (const Array& a : inputs) wide.push_back(array_from(to_vector(a), a.shape(), DType::f64, a.device()));
  Results got, exact;
  for (const auto& [shape, dtype] : wanted) {
    got.push_back(fresh(shape, dtype));
    exact.emplace_back(Array(shape, DType::f64, Device::cpu));
  }
  call(reference_kernels(), inputs, got);
  call(reference_kernels(), wide, exact);
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(name << ", result " << i);
    CHECK(end_untouched(got[i]));
    CHECK(to_vector(got[i]) ==
          to_vector(array_from(to_vector(exact[i]), exact[i].shape(), got[i].dtype(), Device::cpu)));
  }
}

}  // namespace

TEST_CASE("reference kernels read bf16 exactly and round once") {
  const std::int64_t R = 7, N = 5, K = 9;
  const Array x = random16({R, K}), w = random16({N, K}), b = random({N}), dy = random16({R, N}), dy32 = random({R, N});
  for (const DType out : {DType::f32, DType::bf16}) {
    // The operands are already bf16, so that rounding them changes nothing. f32 gradients are rounded for products, but
    // not for sums.
    const LinearCall call{.products = Precision::bf16};
    rounds_once("cast", {x}, {{{R, K}, out}},
                [](const Kernels& k, const auto& in, const Results& y) { k.cast(in[0], y[0]); });
    rounds_once("linear_forward", {x, w, b}, {{{R, N}, out}, {{R, N}, out}},
                [&](const Kernels& k, const auto& in, const Results& y) {
                  k.linear_forward(call, in[0], in[1], in[2], {}, y[0]);
                  k.linear_forward(call, in[0], in[1], Array(), {}, y[1]);
                });
    for (const Array& g : {dy, dy32})
      rounds_once("linear_backward", {g, x, w, b}, {{{R, K}, out}, as_f32({N, K}), as_f32({N})},
                  [&](const Kernels& k, const auto& in, const Results& y) {
                    k.linear_backward(call, {}, in[0], in[1], in[2], in[3], {.dx = y[0], .dw = y[1], .db = y[2]});
                  });
  }
  rounds_once("matmul", {random16({2, R, K}), w}, {as_f32({2, R, N})},
              [](const Kernels& k, const auto& in, const Results& y) { k.matmul(in[0], false, in[1], true, y[0]); });

  rounds_once("binary", {x, random16({K})}, {as_bf16({R, K}), as_bf16({R, K})},
              [](const Kernels& k, const auto& in, const Results& y) {
                k.binary(Binary::multiply, in[0], in[1], y[0]);
                k.binary(Binary::add, in[0], in[1], y[1]);
              });

  const Array q = random16({1, 2, 3, 4}, -2, 2), key = random16({1, 2, 5, 4}, -2, 2), value = random16({1, 2, 5, 4}),
              dout = random16({1, 2, 3, 4});
  const AttentionCall call{.batch = 1,
                           .heads = 2,
                           .queries = 3,
                           .keys = 5,
                           .head_dim = 4,
                           .scale = 0.5,
                           .keep = {},
                           .drop_key = {},
                           .dropout = {drop_threshold(0.2), 5}};
  const auto heads = []<class A>(const A& a) {
    return HeadsOf<A>{a, 0, a.dim(1) * a.dim(2) * a.dim(3), a.dim(2) * a.dim(3), a.dim(3)};
  };
  rounds_once("attention", {q, key, value, dout},
              {as_bf16({1, 2, 3, 4}), as_f32({1, 2, 3, 2}), as_bf16({1, 2, 3, 4}), as_bf16({1, 2, 5, 4}),
               as_bf16({1, 2, 5, 4})},
              [&](const Kernels& k, const auto& in, const Results& y) {
                k.attention_forward(call, heads(in[0]), heads(in[1]), heads(in[2]), heads(y[0]), y[1]);
                k.attention_backward(call, heads(in[3]), heads(in[0]), heads(in[1]), heads(in[2]), y[1], heads(y[2]),
                                     heads(y[3]), heads(y[4]));
              });
  const Array three_four = array_from(std::vector<double>{3, 4}, {2}, DType::bf16, Device::cpu);
  Array sum({}, DType::f64, Device::cpu);
  reference_kernels().sum_of_squares({&three_four, 1}, sum);
  CHECK(item(sum) == 25);
}

TEST_CASE("processor and ONEDNN_MAX_CPU_ISA determine the instructions for bf16 products") {
  const std::string by = bf16_products().instructions;
  const bool by_f32 = by.starts_with("f32 instructions");
  CHECK(bf16_products().faster_than_f32 == !by_f32);
  const char* const leave = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (leave && std::string(leave) == "AVX2") {  // true in the process that this test starts below
    CHECK(by_f32);
    return;
  }
  if (leave || std::getenv("DNNL_MAX_CPU_ISA")) return;
  std::ifstream file("/proc/cpuinfo");
  const std::string info{std::istreambuf_iterator<char>(file), {}};
  const auto has = [&](const char* what) { return info.find(what) != std::string::npos; };
  if (has(" amx_bf16"))
    CHECK((by == "AMX" || by == "f32 instructions (the system refuses AMX)"));
  else
    CHECK(by == (has("AuthenticAMD") && has(" avx512_bf16") ? "AVX-512 bf16" : "f32 instructions"));
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  CHECK(std::system(("ONEDNN_MAX_CPU_ISA=AVX2 '" + self + "' 'processor and ONEDNN*' > /dev/null").c_str()) == 0);
}
