// Signals that must not interrupt foreign code on this thread.
//
// A signal handler without a stack of its own runs on the stack of the thread that it interrupts. Some JIT kernels of
// oneDNN (f32 products without packing, jit_avx512_common_gemm_f32.cpp and jit_avx_gemm_f32.cpp, in 2.6.3 as in its
// sources of 2025) point the stack pointer into a workspace on the heap while they run. A handler that ran then would
// write its frame, up to 11 KB, over whatever lies below that workspace.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// While one lives, every asynchronous signal for this thread waits, those of glibc (setuid) and of profilers included;
// what waited is delivered when it ends. Faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) and SIGABRT are not
// held up: the system would end the process instead. It costs two system calls of some tenths of a microsecond.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  std::uint64_t former_;  // the thread's signal mask
};

}  // namespace plumb::cpu
