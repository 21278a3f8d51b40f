// The tile registers of AMX in ordinary memory, so that Plumb's products by AMX run on any processor.
#pragma once

#include <cstdint>

#include "backends/cpu/amx.h"

namespace plumb::test {

extern const cpu::AmxKernels emulated_amx;

// The number of products of two emulated tiles so far, on all threads.
std::int64_t emulated_products();

// While an object of this class lives, Plumb multiplies bf16 matrices by its code for AMX, on emulated registers.
// products() counts the products of two tiles.
class EmulatedAmx {
 public:
  EmulatedAmx() { cpu::set_amx_kernels(&emulated_amx); }
  ~EmulatedAmx() { cpu::set_amx_kernels(kernels_before_); }
  std::int64_t products() const { return emulated_products() - before_; }
  EmulatedAmx(const EmulatedAmx&) = delete;
  EmulatedAmx& operator=(const EmulatedAmx&) = delete;

 private:
  const std::int64_t before_ = emulated_products();
  const cpu::AmxKernels* const kernels_before_ = cpu::amx_kernels();
};

}  // namespace plumb::test
