// The part of the CUDA runtime that Plumb's backend uses, on the CPU. Code that is correct on a device is correct here.
// Code that is wrong on a device fails here every time, although a device often lets such code pass. For the behaviour,
// see the CUDA Runtime API reference, CUDA 13.
#pragma once

#include <cstddef>
#include <functional>

#include "cuda_device.h"

#define CUDART_VERSION 13000

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700
};
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

cudaError_t cudaDriverGetVersion(int* version);  // 0 if there is no driver
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
  std::size_t sharedMemPerBlockOptin, totalGlobalMem;
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);

// Device memory is inaccessible to the host, and an inaccessible page follows each allocation. (A heap of the program
// divides allocations into buffers. Under AddressSanitizer, there is no such heap, and each buffer is an allocation.)
cudaError_t cudaMalloc(void** address, std::size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
enum { cudaHostAllocDefault = 0 };
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);

using cudaStream_t = struct emulated_stream*;
using cudaEvent_t = struct emulated_event*;
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaDeviceSynchronize();

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream);

namespace emulator {

// Counts the launch of a kernel as a call of the runtime, and returns the status of the launch. Fails for more shared
// memory than cudaFuncSetAttribute has allowed the kernel; the default is 48 KiB.
cudaError_t enter_launch(const void* kernel, std::size_t shared_bytes);

// Submits work to a stream. The work may access device memory while it runs.
void submit(cudaStream_t stream, std::function<void()> work);

}  // namespace emulator

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const cudaError_t status = emulator::enter_launch(reinterpret_cast<const void*>(kernel), config->dynamicSmemBytes);
  if (status == cudaSuccess)
    emulator::submit(config->stream, [=, c = *config] {
      emulator::run_grid(c.gridDim, c.blockDim, c.dynamicSmemBytes, [&] { kernel(arguments...); });
    });
  return status;
}
