// Facts about the machine of a study, for run.json and reports.
#pragma once

#include <string>

namespace plumb::lab {

// The machine that computes the trials.
struct Machine {
  std::string device;  // such as "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3"
  int threads = 1;     // number of threads in use
};

}  // namespace plumb::lab
