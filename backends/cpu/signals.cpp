#include "backends/cpu/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace plumb::cpu {
namespace {

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }
constexpr std::uint64_t asynchronous =
    ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS) | bit(SIGABRT));

// Changes the signal mask by the system call itself, because glibc's pthread_sigmask() never blocks glibc's two
// internal signals. The handlers of these signals need a stack like any other handler.
void change_mask(int how, const std::uint64_t& mask, std::uint64_t* former) {
  ::syscall(SYS_rt_sigprocmask, how, &mask, former, sizeof mask);
}

}  // namespace

SignalsWait::SignalsWait() { change_mask(SIG_BLOCK, asynchronous, &former_); }
SignalsWait::~SignalsWait() { change_mask(SIG_SETMASK, former_, nullptr); }

}  // namespace plumb::cpu
