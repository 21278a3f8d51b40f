// Delays signals that must not interrupt foreign code on this thread.
//
// A signal handler without a separate stack runs on the stack of the thread that it interrupts. Some JIT kernels of
// oneDNN (f32 products without packing: jit_avx512_common_gemm_f32.cpp and jit_avx_gemm_f32.cpp, in version 2.6.3 and
// in its sources of 2025) point the stack pointer into a workspace on the heap while they run. A handler that ran at
// this moment would write its frame, up to 11 KB, over the memory below that workspace.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// While an object lives, asynchronous signals for this thread are delayed, including those of glibc (setuid) and of
// profilers. They are delivered when the object is destroyed. Faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS)
// and SIGABRT are not delayed, because the system would end the process instead. An object costs two system calls of
// some tenths of a microsecond.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  std::uint64_t former_;  // the thread's earlier signal mask
};

}  // namespace plumb::cpu
