#pragma once

#include <signal.h>
#include <sys/resource.h>

namespace plumb::test {

// While a FileSizeLimit lives, no file of this process can grow beyond `bytes`, so that write() fails as on a full
// disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{bytes, former_.rlim_max};
    former_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    ::signal(SIGXFSZ, former_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;

 private:
  rlimit former_{};
  void (*former_handler_)(int);
};

}  // namespace plumb::test
