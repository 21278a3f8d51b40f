# Finds Highway (portable SIMD with dispatch at run time) as Highway::hwy.
find_path(Highway_INCLUDE_DIR hwy/highway.h)
find_library(Highway_LIBRARY hwy)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Highway REQUIRED_VARS Highway_LIBRARY Highway_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libhwy-dev (Debian, Ubuntu), or set Highway_ROOT")
if(Highway_FOUND AND NOT TARGET Highway::hwy)
  add_library(Highway::hwy UNKNOWN IMPORTED)
  set_target_properties(Highway::hwy PROPERTIES IMPORTED_LOCATION ${Highway_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${Highway_INCLUDE_DIR})
endif()
