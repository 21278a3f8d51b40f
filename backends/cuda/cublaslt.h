// Loads cuBLASLt at run time, so that a program with the cuda backend also starts on machines without the library.
#pragma once

#include <cublasLt.h>

#include <string>

namespace plumb::cuda {

// The cuBLASLt functions that Plumb calls. The cuBLAS documentation describes the functions under "Using the cuBLASLt
// API".
struct CublasLt {
#define PLUMB_CUBLASLT_FUNCTIONS(each)                                                                          \
  each(cublasLtCreate) each(cublasLtMatmul) each(cublasLtMatmulAlgoGetHeuristic) each(cublasLtMatmulDescCreate) \
      each(cublasLtMatmulDescDestroy) each(cublasLtMatmulDescSetAttribute) each(cublasLtMatmulPreferenceCreate) \
          each(cublasLtMatmulPreferenceDestroy) each(cublasLtMatmulPreferenceSetAttribute)                      \
              each(cublasLtMatrixLayoutCreate) each(cublasLtMatrixLayoutDestroy)                                \
                  each(cublasLtMatrixLayoutSetAttribute)
#define PLUMB_CUBLASLT_MEMBER(function) decltype(&::function) function;
  PLUMB_CUBLASLT_FUNCTIONS(PLUMB_CUBLASLT_MEMBER)
#undef PLUMB_CUBLASLT_MEMBER
};

// Returns the reason why cuBLASLt cannot be used. If cuBLASLt can be used, returns "".
std::string why_no_cublaslt();
// Returns the loaded functions. Throws Error if the library cannot be opened.
const CublasLt& cublaslt();

}  // namespace plumb::cuda
