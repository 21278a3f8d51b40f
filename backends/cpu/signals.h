// Delays signals that must not interrupt foreign code on this thread.
//
// A signal handler without a separate stack runs on the stack of the thread that the signal interrupts. Some JIT
// kernels of oneDNN (f32 products without packing: jit_avx512_common_gemm_f32.cpp and jit_avx_gemm_f32.cpp, in version
// 2.6.3 and in its sources of 2025) point the stack pointer into a workspace on the heap while they run. A handler that
// runs at this moment writes its frame, up to 11 KB, over the memory below that workspace.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// While an object of this class lives, asynchronous signals for this thread are delayed, including the signals of glibc
// (setuid) and of profilers. When the object is destroyed, the delayed signals are delivered. Faults (SIGSEGV, SIGBUS,
// SIGFPE, SIGILL, SIGTRAP, SIGSYS) and SIGABRT are not delayed, because the system would end the process instead. An
// object costs two system calls of some tenths of a microsecond each.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  std::uint64_t former_;  // the thread's signal mask before this object was constructed
};

}  // namespace plumb::cpu
