// Tests of device memory. Uploads and copies arrive in the order of the calls, and host code cannot access device
// memory directly.
#include "core/memory.h"

#include <numeric>

#include "core/backend.h"
#include "plumb/plumb.h"
#include "tests/support/cuda.h"

using namespace plumb;
using namespace plumb::test;

namespace {

std::vector<float> counted(std::size_t n, float from) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), from);
  return values;
}

Array there(const std::vector<float>& values) {
  return array_from(std::span<const float>(values), {static_cast<std::int64_t>(values.size())}, Device::cuda);
}

// Returns whether the values are equal. A CHECK of both vectors would print all elements.
bool equal_to(const Array& a, const std::vector<float>& values) {
  return to_vector(a) == std::vector<double>(values.begin(), values.end());
}

}  // namespace

TEST_CASE("uploads of any size arrive even if the host's copy changes at once") {
  PLUMB_REQUIRE_CUDA();
  // 2^21 floats fill half of the staging memory. 5 million floats exceed all of the staging memory.
  for (const std::size_t n : {0, 1, 31, 4099, 1 << 21, (1 << 21) + 1, 5'000'000}) {
    INFO(n);
    std::vector<float> values = counted(n, 1);
    const Array a(Shape{static_cast<std::int64_t>(n)}, DType::f32, Device::cuda);
    cuda_memory().upload(values.data(), Out(a).mutable_address(), n * sizeof(float));
    const std::vector<float> expected = values;
    values.assign(n, -1);
    CHECK(equal_to(a, expected));
  }
}

TEST_CASE("copies happen in the order of the calls") {
  PLUMB_REQUIRE_CUDA();
  const std::vector<float> first = counted(1000, 0), second = counted(1000, 5000);
  const Array a = there(first), b(a.shape(), DType::f32, Device::cuda), c(a.shape(), DType::f32, Device::cuda);
  copy_into(a, b);
  copy_into(array_from(std::span<const float>(second), a.shape(), Device::cpu), a);
  copy_into(a, c);
  CHECK(equal_to(b, first));
  CHECK(equal_to(c, second));
  CHECK(same_bytes(a, c));
  CHECK_FALSE(same_bytes(a, b));
}

TEST_CASE("freed memory may be reused at once because work runs in the order of the calls") {
  PLUMB_REQUIRE_CUDA();
  const std::vector<float> kept = counted(100'000, 0);
  for (int i = 0; i < 50; ++i) {
    const Array b(Shape{100'000}, DType::f32, Device::cuda);
    copy_into(there(kept), b);  // the source is freed at the end of this statement
    const Array over = there(counted(100'000, 1e6f));
    CHECK(equal_to(b, kept));
  }
}

TEST_CASE("host access to the elements of a device array throws an error that names the caller") {
  PLUMB_REQUIRE_CUDA();
  const Array a = there({1, 2, 3});
  const std::string expected = "[array] expected an array in host memory, got one on cuda in ";
  const std::string told = error_of([&] { (void)a.data<float>(); });
  CHECK_THAT(told, PLUMB_CATCH_CONTAINS(expected));
  CHECK_THAT(told, PLUMB_CATCH_CONTAINS("memory_test.cpp"));
  CHECK_THAT(error_of([&] { (void)a.bytes(); }), PLUMB_CATCH_CONTAINS(expected));
  CHECK_THAT(error_of([&] { (void)Out(a).mutable_data<float>(); }), PLUMB_CATCH_CONTAINS(expected));
  CHECK(on_host(a).data<float>()[2] == 3);
  CHECK(on_host(Array()).defined() == false);
}

TEST_CASE("traffic counts the work that the host gives to the device") {
  PLUMB_REQUIRE_CUDA();
  const Array b(Shape{3}, DType::f32, Device::cuda);
  const Traffic before = cuda_memory().traffic();
  const Array a = there({1, 2, 3});
  copy_into(a, b);
  (void)to_device(on_host(b), Device::cuda);
  const Traffic after = cuda_memory().traffic();
  CHECK(after.uploads == before.uploads + 2);
  CHECK(after.copies == before.copies + 1);
  CHECK(after.downloads == before.downloads + 1);
  CHECK(after.synchronizations == before.synchronizations + 1);
}
