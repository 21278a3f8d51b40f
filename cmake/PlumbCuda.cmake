# PLUMB_CUDA_SOURCES: the sources of the cuda backend, or what stands for it; plumb_configure_cuda(target): what they need to be compiled.
#   OFF       none
#   EMULATED  by the C++ compiler against the emulated device of tests/cuda_emulator: for tests
set(PLUMB_CUDA OFF CACHE STRING "CUDA backend: OFF or EMULATED")
set_property(CACHE PLUMB_CUDA PROPERTY STRINGS OFF EMULATED)

if(PLUMB_CUDA STREQUAL OFF)
  set(PLUMB_CUDA_SOURCES backends/cuda/absent.cpp)
elseif(PLUMB_CUDA STREQUAL EMULATED)
  file(GLOB PLUMB_CUDA_SOURCES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} backends/cuda/*.cpp backends/cuda/*.cu tests/cuda_emulator/*.cpp)
  # The emulator's cublaslt.cpp stands for the one that opens the library.
  list(FILTER PLUMB_CUDA_SOURCES EXCLUDE REGEX "/absent\\.cpp$|_test\\.cpp$|^backends/cuda/cublaslt\\.cpp$")
else()
  message(FATAL_ERROR "PLUMB_CUDA: expected OFF or EMULATED, got ${PLUMB_CUDA}")
endif()

# By source, so that all others are compiled as they are without CUDA, and come from the same cache.
function(plumb_configure_cuda target)
  if(PLUMB_CUDA STREQUAL EMULATED)
    set_source_files_properties(${PLUMB_CUDA_SOURCES} PROPERTIES
      INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/tests/cuda_emulator/include COMPILE_DEFINITIONS PLUMB_CUDA_EMULATED)
    set(kernels ${PLUMB_CUDA_SOURCES})
    list(FILTER kernels INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
  endif()
endfunction()
