// Tests of machines on which the CUDA backend cannot work as usual: no driver, an old device, too little memory, a
// fault of the device, a cuBLASLt that refuses products. The emulator imitates each machine (emulator::machine()).
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "backends/cuda/products.h"
#include "core/backend.h"
#include "core/bfloat16.h"
#include "core/memory.h"
#include "core/storage.h"
#include "plumb/plumb.h"
#include "tests/cuda_emulator/runtime.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/programs/program.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Another machine, until the end of the scope.
class OnMachine {
 public:
  explicit OnMachine(const std::function<void(emulator::Machine&)>& change) { change(emulator::machine()); }
  ~OnMachine() { emulator::machine() = before_; }

 private:
  const emulator::Machine before_ = emulator::machine();
};

std::string why_without(const std::function<void(emulator::Machine&)>& change) {
  const OnMachine other(change);
  return why_no_cuda();
}

constexpr std::size_t mib = std::size_t{1} << 20;

Array of_mib(std::size_t n) {
  return Array(Shape{static_cast<std::int64_t>(n * mib / sizeof(float))}, DType::f32, Device::cuda);
}

}  // namespace

TEST_CASE("each reason why a machine has no usable device has its own message with the versions") {
  CHECK(why_no_cuda().empty());
  CHECK(why_without([](auto& m) { m.driver = false; }) == "no NVIDIA driver");
  CHECK(why_without([](auto& m) { m.driver_version = 12040; }) ==
        "the NVIDIA driver supports CUDA up to 12.4, but Plumb was built with CUDA 13.0; update the driver");
  CHECK(why_without([](auto& m) { m.devices = 0; }) == "no CUDA device");
  CHECK(why_without([](auto& m) { m.major = 7, m.minor = 5; }) ==
        "emulated device has compute capability 7.5, but the kernels need 8.0 or higher (driver for CUDA 13.0, Plumb "
        "with CUDA 13.0)");
  CHECK(why_without([](auto& m) { m.major = 8, m.minor = 0; }).empty());
}

TEST_CASE("a program on a machine without a usable device ends with one line that says why") {
  const TemporaryFolder here;
  for (const auto& [machine, why] : std::vector<std::pair<std::string, std::string>>{
           {"DEVICES=driver", "no NVIDIA driver"},
           {"DEVICES=0", "no CUDA device"},
           {"DRIVER=12040",
            "the NVIDIA driver supports CUDA up to 12.4, but Plumb was built with CUDA 13.0; update the driver"},
           {"CAPABILITY=7.5",
            "emulated device has compute capability 7.5, but the kernels need 8.0 or higher (driver for CUDA 13.0, "
            "Plumb with CUDA 13.0)"},
           {"FAULT=1",
            "CUDA does not start: an illegal memory access was encountered (driver for CUDA 13.0, Plumb with CUDA "
            "13.0)"}}) {
    const Finished f = run(here.path(), "PLUMB_EMULATED_" + machine + " " + program("bench_step") +
                                            " --device cuda --depth 1 --dim 24 --batch 2 --steps 1");
    CHECK(f.status == 1);
    CHECK(f.err == "error: --device cuda: " + why + "\n");
  }
  // A device that failed takes no memory back, which is a leak for AddressSanitizer.
  const Finished late =
      run(here.path(), "ASAN_OPTIONS=detect_leaks=0 PLUMB_EMULATED_FAULT=300 " + program("bench_step") +
                           " --device cuda --depth 1 --dim 24 --batch 2 --steps 9");
  CHECK(late.status == 1);
  CHECK_THAT(late.err, Catch::Matchers::StartsWith("error: the CUDA device failed: an illegal memory access"));
  CHECK(std::count(late.err.begin(), late.err.end(), '\n') == 1);
}

TEST_CASE("a device array without a device is an error that says why") {
  if (std::getenv("PLUMB_EMULATED_DEVICES")) {  // in the process that the test starts below
    CHECK(error_of([] { of_mib(1); }) == "[cuda] expected a device to compute on, got none: no CUDA device");
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  CHECK(std::system(("PLUMB_EMULATED_DEVICES=0 '" + self + "' 'a device array without*' > /dev/null").c_str()) == 0);
}

TEST_CASE("a block gets more than 48 KiB of shared memory only with the attribute") {
  static const int kernel = 0;
  constexpr std::size_t kib = 1024;
  CHECK(emulator::enter_launch(&kernel, 48 * kib) == cudaSuccess);
  CHECK(emulator::enter_launch(&kernel, 48 * kib + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * kib + 1) ==
        cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * kib) == cudaSuccess);
  CHECK(emulator::enter_launch(&kernel, 100 * kib) == cudaSuccess);
  CHECK(emulator::enter_launch(&kernel, 101 * kib) == cudaErrorInvalidValue);
}

namespace {

// An array on the device with small whole numbers, whose products and sums are exact in every dtype.
template <class T>
struct Numbers {
  std::vector<T> host;
  Array device;

  Numbers(std::int64_t n, unsigned seed)
      : host(static_cast<std::size_t>(n)), device(Shape{n}, dtype_of<T>, Device::cuda) {
    std::mt19937 random(seed);
    for (T& x : host) x = T(static_cast<float>(static_cast<int>(random() % 9) - 4));
    cuda_memory().upload(host.data(), Out(device).mutable_address(), host.size() * sizeof(T));
  }
  double at(std::int64_t i) const { return static_cast<double>(static_cast<float>(host[static_cast<std::size_t>(i)])); }
};

// Computes a product whose first operand begins `offset` elements after the begin of an array. Returns whether the
// values are exact.
template <class S, class T>
bool is_exact(const cuda::Product& p, std::int64_t offset) {
  const Numbers<S> a(offset + p.count * p.M * p.K, 1), b(p.count * p.K * p.N, 2);
  const Numbers<T> bias(p.N, 3);
  const Numbers<T> y(p.count * p.M * p.N, 4);
  cuda::multiply(p, static_cast<const S*>(a.device.address()) + offset, b.device.address(),
                 p.bias ? bias.device.address() : nullptr, Out(y.device).mutable_address());
  const std::vector<double> found = to_vector(y.device);
  bool exact = true;
  for (std::int64_t i = 0; i < p.count; ++i)
    for (std::int64_t m = 0; m < p.M; ++m)
      for (std::int64_t n = 0; n < p.N; ++n) {
        const std::int64_t at = (i * p.M + m) * p.N + n;
        double sum = (p.bias ? bias.at(n) : 0) + (p.add_to_y ? y.at(at) : 0);
        for (std::int64_t k = 0; k < p.K; ++k)
          sum += a.at(offset + i * p.stride_a + (p.transpose_a ? k * p.M + m : m * p.K + k)) *
                 b.at(i * p.stride_b + (p.transpose_b ? n * p.K + k : k * p.N + n));
        exact = exact && found[static_cast<std::size_t>(at)] == sum;
      }
  return exact;
}

cuda::Product product(std::int64_t count, std::int64_t M, std::int64_t K, std::int64_t N) {
  return {.dtype = DType::f32,
          .count = count,
          .M = M,
          .N = N,
          .K = K,
          .transpose_a = false,
          .transpose_b = false,
          .stride_a = M * K,
          .stride_b = K * N,
          .stride_y = M * N};
}

std::uint64_t plain_products() { return cuda_memory().traffic().plain_products; }

}  // namespace

TEST_CASE("products that cuBLASLt refuses are computed by a kernel of Plumb and counted") {
  struct Sizes {
    std::int64_t count, M, K, N, offset = 0;
  };
  const auto all_are_exact = [](const Sizes& s) {
    bool exact = true;
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool bias : {false, true})
          for (const bool add_to_y : {false, true}) {
            cuda::Product p = product(s.count, s.M, s.K, s.N);
            p.transpose_a = transpose_a, p.transpose_b = transpose_b, p.bias = bias, p.add_to_y = add_to_y;
            exact = exact && is_exact<float, float>(p, s.offset);
            p.dtype = DType::f64;
            exact = exact && is_exact<double, double>(p, s.offset);
            p.dtype = DType::f32, p.bf16_operands = true;
            exact = exact && is_exact<bfloat16, float>(p, s.offset);
          }
    return exact;
  };
  constexpr std::uint64_t products = 16 * 3;
  {
    const OnMachine strict([](auto& m) { m.strict_cublaslt = true; });
    // One row, one column, a sum of one term, and an operand with an odd alignment.
    for (const Sizes& s : {Sizes{1, 5, 7, 1}, Sizes{1, 1, 9, 6}, Sizes{1, 6, 1, 8}, Sizes{3, 5, 40, 1},
                           Sizes{2, 1, 70, 3}, Sizes{1, 1, 1, 1}, Sizes{1, 8, 16, 4, 1}}) {
      INFO(s.count << " of [" << s.M << ", " << s.K << "] and [" << s.K << ", " << s.N << "], offset " << s.offset);
      const std::uint64_t before = plain_products();
      CHECK(all_are_exact(s));
      CHECK(plain_products() == before + products);
    }
    const std::uint64_t before = plain_products();
    CHECK(all_are_exact({1, 8, 16, 4}));
    CHECK(plain_products() == before);  // cuBLASLt computes other products
  }
  // cuBLASLt may also refuse a product only when it is computed. The plan keeps this refusal.
  const std::uint64_t before = plain_products();
  {
    const OnMachine late([](auto& m) { m.late_cublaslt = true; });
    CHECK(is_exact<float, float>(product(1, 9, 8, 4), 0));
  }
  CHECK(is_exact<float, float>(product(1, 9, 8, 4), 0));
  CHECK(plain_products() == before + 2);
  const OnMachine without_algorithm([](auto& m) { m.cublaslt_state = 15; });
  CHECK(is_exact<float, float>(product(1, 9, 8, 5), 0));
  CHECK(plain_products() == before + 3);
}

TEST_CASE("a failure of cuBLASLt is an error with the shapes and the types and the alignments of the product") {
  const OnMachine broken([](auto& m) { m.cublaslt_failure = 14; });
  cuda::Product p = product(2, 3, 5, 7);
  p.transpose_b = true, p.bf16_operands = true;
  CHECK(error_of([&] { is_exact<bfloat16, float>(p, 1); }) ==
        "[cuda] cuBLASLt failed with status 14 in the choice of an algorithm for 2 products of [3, 5] and [5, 7] "
        "(transposed), operands bf16, results f32, aligned to 2, 64 and 64 bytes");
}

TEST_CASE("a linear layer with one output trains where cuBLASLt refuses its products") {
  const auto gradients = [](Device device) {
    const DefaultsScope defaults({DType::f32, device});
    const Tensor x = variable(random_normal({6, 5}, 0, "x")), weight = variable(random_normal({1, 5}, 0, "weight")),
                 bias = variable(random_normal({1}, 0, "bias"));
    const Tensor y = linear(x, weight, bias);
    const Gradients g = backward(sum(y * y));
    std::vector<double> all;
    for (const Tensor& t : {x, weight, bias})
      for (const double v : to_vector(g.find(t).array())) all.push_back(v);
    return all;
  };
  const std::vector<double> cpu = gradients(Device::cpu);
  const OnMachine strict([](auto& m) { m.strict_cublaslt = true; });
  const std::vector<double> cuda = gradients(Device::cuda);
  REQUIRE(cuda.size() == cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) CHECK(cuda[i] == Approx(cpu[i]).epsilon(1e-5));
}

TEST_CASE("out of memory frees the regions without used blocks and tries once more and then says how much is left") {
  const Array kept = of_mib(1);
  { const Array a = of_mib(300), b = of_mib(310); }  // the heap keeps both regions
  const OnMachine full([](auto& m) { m.memory = emulator::allocated() + (buffers_are_reused ? 0 : mib); });
  const Array larger = of_mib(buffers_are_reused ? 500 : 0);
  CHECK(larger.defined());
  const std::string told = error_of([] { of_mib(4096); });
  CHECK_THAT(told, contains("out of memory on the device: asked for 4294967296 bytes (4096.0 MiB); ") &&
                       contains(" MiB are in use, ") && contains(" MiB are reserved, and ") &&
                       contains(" MiB of the device are free"));
}

TEST_CASE("a program or a trial without memory on the device says so and what to do") {
  const TemporaryFolder here;
  const Finished f = run(here.path(), "PLUMB_EMULATED_MEMORY=1048576 " + program("bench_step") +
                                          " --device cuda --depth 1 --dim 24 --batch 2 --steps 1");
  CHECK(f.status == 1);
  CHECK_THAT(f.err, contains("error: out of memory on the device: asked for ") &&
                        contains(" of 1.0 MiB of the device are free; try a smaller --batch\n"));
  CHECK(lines_of(f.err) == 1);

  EpsilonStudy study{.more = [](lab::Trial&) { of_mib(100'000); }};
  const Ended e = call(
      here.path(), [&](int argc, const char* const* argv) { return study(argc, argv); },
      with(tiny, {"--device", "cuda", "--depths", "1"}));
  INFO(e.err);
  CHECK(e.status == 1);
  CHECK_THAT(file(here, "a/ledger.jsonl"),
             contains("out of memory on the device: asked for 104857600000 bytes (100000.0 MiB); ") &&
                 contains(" are free; try a smaller --batch"));
  CHECK(lines_of(file(here, "a/ledger.jsonl")) == 2);  // the failure of a trial does not end the study
}

TEST_CASE("a fault of the device ends the study with one line and its finished trials are kept for --resume") {
  const emulator::Machine before = emulator::machine();
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words more{"--device", "cuda", "--depths", "1", "--seeds", "0..1", "--eval-images", "20"},
      words = with(tiny, more);
  Words in_whole = tiny;
  in_whole.back() = "whole";  // the value of --out
  const long calls_before = emulator::calls();
  const Ended whole = call(folder.path(), main, with(in_whole, more));
  INFO(whole.err);
  REQUIRE(whole.status == 0);
  const long calls_of_a_trial = (emulator::calls() - calls_before) / 4;

  // The third trial of four ends in the middle.
  study.more = [&](lab::Trial&) {
    if (study.bodies == 7) emulator::machine().fault = emulator::calls() + calls_of_a_trial / 2;
  };
  const Ended lost = call(folder.path(), main, words);
  INFO(lost.out << lost.err);
  CHECK(lost.status == 1);
  CHECK(lost.err.find("error: ") == lost.err.rfind("error: "));
  CHECK_THAT(lost.err,
             contains("error: the CUDA device failed: an illegal memory access was encountered (driver for "
                      "CUDA 13.0, Plumb with CUDA 13.0). A kernel or copy that was started earlier can be the "
                      "reason. This process cannot use the device again; start the program again, a study "
                      "with --resume"));
  CHECK(lines_of(file(folder, "a/ledger.jsonl")) == 2);

  emulator::machine() = before;
  study.more = nullptr;
  const Ended resumed = call(folder.path(), main, with(words, {"--resume"}));
  INFO(resumed.out << resumed.err);
  CHECK(resumed.status == 0);
  CHECK(study.bodies == 9);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
}

TEST_CASE("bench_step on the device names the device and its products and the time of the host") {
  const TemporaryFolder here;
  const std::string words = " --device cuda --depth 2 --dim 24 --batch 4 --steps 3 --warmup 1";
  const auto measured = [&](const std::string& environment, const std::string& more) {
    const Finished f = run(here.path(), environment + " " + program("bench_step") + words + more);
    INFO(f.out << f.err);
    REQUIRE(f.status == 0);
    return nlohmann::json::parse(f.out);
  };
  const nlohmann::json real = measured("", ""), bf16 = measured("", " --dtype bf16"),
                       nothing = measured("PLUMB_EMULATED_KERNELS=none", "");
  CHECK(real["machine"] == "emulated device, compute capability 9.0");
  CHECK(real["products"] == "f32 by cuBLASLt");
  CHECK(bf16["products"] == "bf16 by cuBLASLt");
  CHECK_FALSE(real.contains("page_faults"));
  CHECK_FALSE(real.contains("threads"));
  CHECK(real["plain_products"] == 0);
  CHECK(measured("PLUMB_EMULATED_CUBLASLT=strict", "")["loss"].get<double>() ==
        Approx(real["loss"].get<double>()).epsilon(1e-5));
  // Without kernels, a step takes the time of the host alone.
  CHECK(nothing["launches"] == real["launches"]);
  CHECK(nothing["host_ms"].get<double>() > 0);
  CHECK(nothing["median_s"].get<double>() < real["median_s"].get<double>() / 10);
}
