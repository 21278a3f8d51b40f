# Runs when the package is installed. Copies the headers of users, plumb/plumb.h, lab.h and vision.h, to include/plumb,
# and every header that they include, directly or through other headers, to include/plumb/internal. The includes become
# "plumb/internal/core/..". Therefore the package adds only include/ to a user's include path, and the headers of the
# package never pick up a user's core/error.h. Unchanged files are not written again. The script expects
# PLUMB_SOURCE_DIR and PLUMB_HEADERS_DESTINATION.
cmake_minimum_required(VERSION 3.25)
set(headers plumb/plumb.h plumb/lab.h plumb/vision.h)
set(done)
while(headers)
  list(POP_FRONT headers header)
  if(header IN_LIST done)
    continue()
  endif()
  list(APPEND done ${header})
  file(READ ${PLUMB_SOURCE_DIR}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+" includes "${text}")
  list(TRANSFORM includes REPLACE "#include \"" "")
  list(APPEND headers ${includes})
  string(REGEX REPLACE "#include \"(core|autograd|nn|experiments)/" "#include \"plumb/internal/\\1/" text "${text}")
  set(to "${PLUMB_HEADERS_DESTINATION}/internal/${header}")
  string(REPLACE "/internal/plumb/" "/" to "${to}")
  set(before "")
  if(EXISTS "$ENV{DESTDIR}${to}")
    file(READ "$ENV{DESTDIR}${to}" before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE "$ENV{DESTDIR}${to}" "${text}")
  endif()
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${to}")
endwhile()
file(CHMOD_RECURSE "$ENV{DESTDIR}${PLUMB_HEADERS_DESTINATION}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
     DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
