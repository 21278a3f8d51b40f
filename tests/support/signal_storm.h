// Simulates the signals of a profiler. While a SignalStorm exists, every thread of the process gets SIGPROF 2,000 times
// a second. A handler counts the signals, on the stack of the interrupted thread.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {

class SignalStorm {
 public:
  SignalStorm() {
    taken_ = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { taken_.fetch_add(1, std::memory_order_relaxed); };
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGPROF, &action, nullptr);
    sender_ = std::jthread([](const std::stop_token& stop) { send(stop); });
  }
  ~SignalStorm() {
    sender_ = {};
    ::signal(SIGPROF, SIG_IGN);  // the default action for a pending signal would end the process
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;

  static std::int64_t taken() { return taken_.load(); }

 private:
  static void send(const std::stop_token& stop) {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    const auto process = ::getpid();
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    std::vector<pid_t> threads;
    auto next = std::chrono::steady_clock::now();
    for (std::int64_t round = 0; !stop.stop_requested(); ++round) {
      if (round % 16 == 0) {  // new threads may have started since the last look
        threads.clear();
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
          if (const pid_t thread = std::stoi(task.path().filename().string()); thread != self)
            threads.push_back(thread);
      }
      for (const pid_t thread : threads) ::syscall(SYS_tgkill, process, thread, SIGPROF);
      next = std::max(next, std::chrono::steady_clock::now()) + std::chrono::microseconds(500);
      std::this_thread::sleep_until(next);
    }
  }

  inline static std::atomic<std::int64_t> taken_{0};
  std::jthread sender_;
};

}  // namespace plumb::test
