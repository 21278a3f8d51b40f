# Installs the package. find_package(plumb) provides the target plumb::plumb, which adds include/ to the include path.
# Users include plumb/plumb.h, plumb/lab.h or plumb/vision.h. All other headers are in include/plumb/internal.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plumb)
install(TARGETS plumb EXPORT plumb-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT plumb-targets NAMESPACE plumb:: DESTINATION ${package_dir})
install(CODE "set(PLUMB_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
set(PLUMB_HEADERS_DESTINATION \"\${CMAKE_INSTALL_PREFIX}/include/plumb\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/plumb)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/plumb)
file(GLOB examples CONFIGURE_DEPENDS examples/*.cpp)
install(FILES ${examples} examples/consumer/CMakeLists.txt DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/plumb/examples)
foreach(program IN LISTS plumb_programs)
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
endforeach()

set(plumb_needs_cuda "")
if(PLUMB_CUDA_FOUND)
  set(plumb_needs_cuda " \"CUDAToolkit: nvidia-cuda-toolkit\"")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/plumbConfig.cmake.in ${PROJECT_BINARY_DIR}/plumbConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plumbConfig.cmake ${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake cmake/FindOneDnn.cmake cmake/FindHighway.cmake
  DESTINATION ${package_dir})
