// cuBLASLt, opened at run time: a program with the cuda backend in it starts where the library is not.
#pragma once

#include <cublasLt.h>

#include <string>

namespace plumb::cuda {

// The functions that products are made of; what they do: cuBLAS library documentation, "Using the cuBLASLt API".
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

// What keeps it from being used, "" if nothing.
std::string why_no_cublaslt();
// Throws an Error where it cannot be opened.
const CublasLt& cublaslt();

}  // namespace plumb::cuda
