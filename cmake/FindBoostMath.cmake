# Finds Boost.Math (distributions and special functions, header-only) as Boost::math. The module looks for the header
# directly, because CMake deprecates its FindBoost from version 3.30 on.
find_path(BoostMath_INCLUDE_DIR boost/math/distributions/students_t.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(BoostMath REQUIRED_VARS BoostMath_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libboost-math-dev (Debian, Ubuntu), or set BoostMath_ROOT")
if(BoostMath_FOUND AND NOT TARGET Boost::math)
  add_library(Boost::math INTERFACE IMPORTED)
  set_target_properties(Boost::math PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${BoostMath_INCLUDE_DIR})
endif()
