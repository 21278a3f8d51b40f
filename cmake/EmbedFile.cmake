# cmake -DFILE=experiments/lab/report/page.css -DOUT=FILE -P EmbedFile.cmake: writes the C++ source file OUT. In this
# example, the function page_css() in OUT returns the bytes of FILE. FILE is relative to the current folder. The header
# assets.h in the folder of FILE declares the function.
cmake_path(GET FILE PARENT_PATH folder)
cmake_path(GET FILE FILENAME name)
string(MAKE_C_IDENTIFIER ${name} name)
file(SIZE ${FILE} size)
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
string(REPLACE "\\x0a" "\\x0a\"\n      \"" bytes "${bytes}")
file(WRITE ${OUT} "// Made from ${FILE}.
#include \"${folder}/assets.h\"

namespace plumb::lab {

std::string_view ${name}() {
  return {
      \"${bytes}\", ${size}};
}

}  // namespace plumb::lab
")
