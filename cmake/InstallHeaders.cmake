# Runs when the package is installed. Copies the public headers to include/plumb and changes their includes to
# "plumb/core/...". Therefore the package adds only include/ to a user's include path, and the headers of the package
# never pick up a user's core/error.h. Unchanged files are not written again. The script expects PLUMB_SOURCE_DIR,
# PLUMB_UMBRELLA_HEADER (the generated plumb.h) and PLUMB_HEADERS_DESTINATION.
file(GLOB_RECURSE headers RELATIVE ${PLUMB_SOURCE_DIR} ${PLUMB_SOURCE_DIR}/core/*.h ${PLUMB_SOURCE_DIR}/core/*.def ${PLUMB_SOURCE_DIR}/autograd/*.h ${PLUMB_SOURCE_DIR}/nn/*.h
     ${PLUMB_SOURCE_DIR}/experiments/*.h)
foreach(header IN LISTS headers ITEMS plumb.h)
  if(header STREQUAL plumb.h)
    file(READ ${PLUMB_UMBRELLA_HEADER} text)
  else()
    file(READ ${PLUMB_SOURCE_DIR}/${header} text)
  endif()
  string(REGEX REPLACE "#include \"(core|autograd|nn|experiments)/" "#include \"plumb/\\1/" text "${text}")
  set(to "${PLUMB_HEADERS_DESTINATION}/${header}")
  set(before "")
  if(EXISTS "$ENV{DESTDIR}${to}")
    file(READ "$ENV{DESTDIR}${to}" before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE "$ENV{DESTDIR}${to}" "${text}")
  endif()
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${to}")
endforeach()
file(CHMOD_RECURSE "$ENV{DESTDIR}${PLUMB_HEADERS_DESTINATION}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
     DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
