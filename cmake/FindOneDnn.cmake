# Finds oneDNN as OneDnn::dnnl. The module looks for header and library directly, because oneDNN's CMake package fails
# on systems without OpenCL headers (which Debian only recommends). If oneDNN is in another place, such as the folder of
# a Python wheel, set OneDnn_ROOT.
find_path(OneDnn_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDnn_LIBRARY NAMES dnnl libdnnl.so.3)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDnn REQUIRED_VARS OneDnn_LIBRARY OneDnn_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libdnnl-dev (Debian, Ubuntu), or set OneDnn_ROOT")
if(OneDnn_FOUND AND NOT TARGET OneDnn::dnnl)
  add_library(OneDnn::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDnn::dnnl PROPERTIES IMPORTED_LOCATION ${OneDnn_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OneDnn_INCLUDE_DIR})
endif()
