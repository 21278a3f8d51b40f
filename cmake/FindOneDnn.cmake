# OneDnn::dnnl. oneDNN's own package file fails on systems without OpenCL headers (Debian only recommends them), so header and
# library are looked for directly. OneDnn_ROOT may point elsewhere, to a Python wheel's folder for example.
find_path(OneDnn_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDnn_LIBRARY NAMES dnnl libdnnl.so.3)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDnn REQUIRED_VARS OneDnn_LIBRARY OneDnn_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libdnnl-dev (Debian, Ubuntu), or set OneDnn_ROOT")
if(OneDnn_FOUND AND NOT TARGET OneDnn::dnnl)
  add_library(OneDnn::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDnn::dnnl PROPERTIES IMPORTED_LOCATION ${OneDnn_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OneDnn_INCLUDE_DIR})
endif()
