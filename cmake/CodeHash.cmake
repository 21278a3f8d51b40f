# cmake -DLIST=FILE -DOUT=FILE -DTEMPLATE=FILE -P CodeHash.cmake: writes OUT from TEMPLATE and replaces @HASH@ by a
# hash. The first line of LIST is text (compiler flags). The other lines are names of files. The hash depends on the
# text and on the contents of the files. OUT is written only if the content of OUT changes.
file(STRINGS ${LIST} lines)
list(POP_FRONT lines flags)
set(all "${flags}")
foreach(path IN LISTS lines)
  file(SHA256 ${path} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 HASH "${all}")
string(SUBSTRING ${HASH} 0 16 HASH)
configure_file(${TEMPLATE} ${OUT} @ONLY)
