#include "backends/cuda/cublaslt.h"

#include <dlfcn.h>

#include "core/error.h"

namespace plumb::cuda {
namespace {

#define PLUMB_TEXT_OF(x) #x
#define PLUMB_TEXT(x) PLUMB_TEXT_OF(x)
constexpr const char* library_name =
    "libcublasLt.so." PLUMB_TEXT(CUBLAS_VER_MAJOR);  // uses the major version of the header at compile time

struct Opened {
  CublasLt functions{};
  std::string why;
};

const Opened& opened() {
  static const Opened& result = *new Opened([] {
    Opened o;
    void* const library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      o.why = fmt::format("cannot open {}, which comes with CUDA: {}", library_name, dlerror());
      return o;
    }
#define PLUMB_CUBLASLT_FIND(name)                                                \
  o.functions.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (!o.functions.name) o.why = fmt::format("{} has no function {}", library_name, #name);
    PLUMB_CUBLASLT_FUNCTIONS(PLUMB_CUBLASLT_FIND)
#undef PLUMB_CUBLASLT_FIND
    return o;
  }());
  return result;
}

}  // namespace

std::string why_no_cublaslt() { return opened().why; }

const CublasLt& cublaslt() {
  check(opened().why.empty(), "[cuda] expected a library for matrix products, got none: {}", opened().why);
  return opened().functions;
}

}  // namespace plumb::cuda
