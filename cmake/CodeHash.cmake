# cmake -DLIST=FILE -DOUT=FILE -DTEMPLATE=FILE -P CodeHash.cmake: writes OUT from TEMPLATE, with @HASH@ the hash of the files that LIST names, one a line
# after a first line that counts itself (flags). Written only where it changes.
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
