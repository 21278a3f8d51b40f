# PLUMB_CUDA_SOURCES: the sources of the cuda backend, or what stands for it; plumb_configure_cuda(target): what they need to be compiled, and linked.
#   OFF       none
#   ON        by nvcc, of CUDA 12 or later. Programs start without a driver or cuBLASLt: cudart is linked statically, the other opened at run time
#   AUTO      ON where there is such an nvcc, else OFF
#   EMULATED  by the C++ compiler against the emulated device of tests/cuda_emulator: for tests
# CMAKE_CUDA_ARCHITECTURES: compute capability 9.0, and code that later and earlier devices from 8.0 on translate, unless said otherwise.
set(PLUMB_CUDA AUTO CACHE STRING "CUDA backend: AUTO, ON, OFF or EMULATED")
set_property(CACHE PLUMB_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)

set(PLUMB_CUDA_FOUND FALSE)
if(PLUMB_CUDA MATCHES "^(AUTO|ON)$")
  find_program(PLUMB_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin DOC "CUDA's compiler")
  set(plumb_nvcc_version 0)
  if(PLUMB_NVCC)
    execute_process(COMMAND ${PLUMB_NVCC} --version OUTPUT_VARIABLE plumb_nvcc_says ERROR_QUIET)
    if(plumb_nvcc_says MATCHES "release ([0-9.]+)")
      set(plumb_nvcc_version ${CMAKE_MATCH_1})
    endif()
  endif()
  if(plumb_nvcc_version VERSION_GREATER_EQUAL 12)
    set(PLUMB_CUDA_FOUND TRUE)
  elseif(PLUMB_CUDA STREQUAL ON)
    message(FATAL_ERROR "PLUMB_CUDA=ON: expected nvcc of CUDA 12 or later, got ${PLUMB_NVCC} ${plumb_nvcc_version}: install CUDA's toolkit, or name its nvcc with -DPLUMB_NVCC=PATH")
  endif()
  if(PLUMB_CUDA_FOUND AND PLUMB_SANITIZE)
    set(PLUMB_CUDA_FOUND FALSE)  # the sanitizers look at the emulated device
  endif()
endif()

if(PLUMB_CUDA_FOUND)
  set(CMAKE_CUDA_COMPILER ${PLUMB_NVCC})
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
  endif()
  if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "CUDA backend: nvcc ${plumb_nvcc_version}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
elseif(PLUMB_CUDA STREQUAL AUTO)
  message(STATUS "CUDA backend: none, as no nvcc of CUDA 12 or later was found (PLUMB_NVCC)")
endif()

if(PLUMB_CUDA_FOUND OR PLUMB_CUDA STREQUAL EMULATED)
  file(GLOB PLUMB_CUDA_SOURCES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} backends/cuda/*.cpp backends/cuda/*.cu)
  list(FILTER PLUMB_CUDA_SOURCES EXCLUDE REGEX "/absent\\.cpp$")
  if(PLUMB_CUDA STREQUAL EMULATED)
    file(GLOB plumb_emulator CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} tests/cuda_emulator/*.cpp)
    list(APPEND PLUMB_CUDA_SOURCES ${plumb_emulator})
    # The emulator's cublaslt.cpp stands for the one that opens the library.
    list(FILTER PLUMB_CUDA_SOURCES EXCLUDE REGEX "_test\\.cpp$|^backends/cuda/cublaslt\\.cpp$")
  endif()
elseif(PLUMB_CUDA MATCHES "^(AUTO|OFF)$")
  set(PLUMB_CUDA_SOURCES backends/cuda/absent.cpp)
else()
  message(FATAL_ERROR "PLUMB_CUDA: expected AUTO, ON, OFF or EMULATED, got ${PLUMB_CUDA}")
endif()

# By source, so that all others are compiled as they are without CUDA, and come from the same cache.
function(plumb_configure_cuda target)
  set(kernels ${PLUMB_CUDA_SOURCES})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  if(PLUMB_CUDA STREQUAL EMULATED)
    set_source_files_properties(${PLUMB_CUDA_SOURCES} PROPERTIES
      INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/tests/cuda_emulator/include COMPILE_DEFINITIONS PLUMB_CUDA_EMULATED)
    set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
  elseif(PLUMB_CUDA_FOUND)
    # CMake 3.25 knows no C++20 for nvcc. fmt's checks at compile time are consteval, which nvcc does not follow.
    set_source_files_properties(${kernels} PROPERTIES
      COMPILE_OPTIONS "-std=c++20;--expt-relaxed-constexpr;-DFMT_CONSTEVAL=;-DFMT_USE_CONSTEXPR=1")
    set(host ${PLUMB_CUDA_SOURCES})
    list(FILTER host INCLUDE REGEX "\\.cpp$")
    set_source_files_properties(${host} PROPERTIES INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
    target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  endif()
endfunction()
