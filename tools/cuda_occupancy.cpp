// Reads lines "KERNEL;REGISTERS;STACK;SHARED" and appends the occupancy in percent to each line. The occupancy is the
// share of a multiprocessor's threads (compute capability 9.0) that blocks of 256 threads can fill. The program uses
// CUDA's occupancy rules and needs no device.
#include <cuda_occupancy.h>

#include <iostream>
#include <sstream>
#include <string>

int main() {
  cudaOccDeviceProp device;  // compute capability 9.0, as on an H100
  device.computeMajor = 9, device.computeMinor = 0;
  device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = 2048;
  device.regsPerBlock = 65536, device.regsPerMultiprocessor = 65536;
  device.warpSize = 32, device.numSms = 132;
  device.sharedMemPerBlock = 48 << 10, device.sharedMemPerMultiprocessor = 228 << 10,
  device.sharedMemPerBlockOptin = 227 << 10;
  device.reservedSharedMemPerBlock = 1 << 10;
  constexpr int threads = 256;
  const cudaOccDeviceState state;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::string kernel, number;
    std::getline(fields, kernel, ';');
    cudaOccFuncAttributes function;
    function.maxThreadsPerBlock = 1024;
    std::getline(fields, number, ';');
    function.numRegs = std::stoi(number);
    std::getline(fields, number, ';');
    std::getline(fields, number, ';');
    function.sharedSizeBytes = std::stoul(number);
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, 0) != CUDA_OCC_SUCCESS)
      return 1;
    std::cout << line << ';'
              << 100 * result.activeBlocksPerMultiprocessor * threads / device.maxThreadsPerMultiprocessor << '\n';
  }
}
