# Functions that set a target's warnings, sanitizers, instruction-set flags, groups for unity builds, code hash and
# embedded files.
include(CheckCXXSourceCompiles)

function(plumb_configure_target target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow> $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${PLUMB_WERROR}>>:-Werror>)
  # Programs contain no path of the machine that built them: messages name files relative to the project. In a build
  # folder inside the project, ccache replaces the path of the project by a path from the build folder.
  set(map -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  file(RELATIVE_PATH from_build ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  if(from_build MATCHES "^[./]+$")
    list(APPEND map -ffile-prefix-map=${from_build}=)
  endif()
  list(TRANSFORM map PREPEND -Xcompiler= OUTPUT_VARIABLE cuda_map)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${map}> $<$<COMPILE_LANGUAGE:CUDA>:${cuda_map}>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC saves 5 to 20 % of its time if it collects no garbage below this many KB in each process.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms in std::string (GCC bug 105651)
  endif()
  if(PLUMB_SANITIZE)
    # The address sanitizer stops at every use of a null pointer, at accesses beyond an object, and at calls of an
    # object that was freed. The null check of the undefined-behaviour sanitizer would add only references that are bound
    # to null and never used. The alignment check slows scalar loops by a factor of two, so only some code has it
    # (plumb_set_sanitizer_options).
    target_compile_options(${target} PRIVATE -fsanitize=${PLUMB_SANITIZE} -fno-sanitize=null,object-size,vptr,alignment
                           -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${PLUMB_SANITIZE})
  endif()
endfunction()

# Files named *_simd.cpp contain Highway kernels. These files are compiled once for each instruction set, and the
# program chooses an instruction set at run time. The baseline is x86-64-v2, because Debian's Highway has a scalar
# baseline without 128-bit operations. The mask keeps SSSE3, AVX2 and AVX-512. The files need -O3, because -O2 would
# keep arrays of vectors in memory. Products and sums are fused only at the places that the source code names. Therefore
# a kernel gives the same bits alone and inlined in another kernel. Sanitizer builds leave AVX-512 out, because kernels
# are the same code for each width, and -O3, because -O1 of their presets takes a third of the time to compile.
function(plumb_simd_sources target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "_simd\\.cpp$")
  set(flags -ffp-contract=off)
  if(NOT PLUMB_SANITIZE)
    list(APPEND flags -O3)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(mask 0x48D0)
    if(PLUMB_SANITIZE)
      set(mask 0x49D0)
    endif()
    list(APPEND flags -march=x86-64-v2 -DHWY_DISABLED_TARGETS=${mask})
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()

# Compiles the file with the products of AMX for processors with AMX, if the compiler knows AMX.
function(plumb_amx_source target)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(CMAKE_REQUIRED_FLAGS "-mamx-tile -mamx-bf16")
    check_cxx_source_compiles("#include <immintrin.h>\nint main() { _tile_zero(0); _tile_dpbf16ps(0, 4, 6); }"
      PLUMB_COMPILER_HAS_AMX)
    if(PLUMB_COMPILER_HAS_AMX)
      set_source_files_properties(backends/cpu/amx_registers.cpp PROPERTIES COMPILE_OPTIONS "-O3;-mamx-tile;-mamx-bf16")
    endif()
  endif()
endfunction()

# In unity builds (CMAKE_UNITY_BUILD), the files of a folder are compiled as one file, because they include the same
# headers and use the same templates. All experiment programs are one such group. CMake compiles files with options of
# their own, such as kernels, alone.
function(plumb_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(IS_ABSOLUTE ${source})
      continue()  # a generated file
    endif()
    cmake_path(GET source PARENT_PATH folder)
    if(folder MATCHES "^experiments/[^/]*$" AND NOT folder MATCHES "^experiments/(lab|vision)$")
      set(folder experiments)
    endif()
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group})
    if(PLUMB_SANITIZE)
      plumb_set_sanitizer_options(${target} ${source} ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# Sets the options of a source file in sanitizer builds. Only code with long loops over data is optimized, because the
# other code takes most of the time of a build and little of the time of a test. Images of glyphs are painted pixel by
# pixel in most tests of studies. Without -O3, painting takes most of the time of these tests. Only the code that
# reinterprets bytes or loads vectors has the alignment check.
function(plumb_set_sanitizer_options target source group)
  set(options)
  set(alone)  # whether CMake compiles the file alone
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS COMPILE_FLAGS INCLUDE_DIRECTORIES SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(own ${source} ${property})
    if(own)
      set(alone TRUE)
    endif()
  endforeach()
  if(PLUMB_SANITIZE MATCHES undefined AND source MATCHES "^(core|backends/(cpu|cuda))/")
    list(APPEND options -fsanitize=alignment)
  endif()
  if(source STREQUAL "experiments/vision/data/glyphs.cpp")
    list(APPEND options -O3)
    set(alone TRUE)
  elseif(NOT source MATCHES "^(core|backends|tests/cuda_emulator|experiments/(lab/(data/|stats/|[^/]*$)|vision/data/))")
    list(APPEND options -O0)
  endif()
  # All files of a group that are not compiled alone have the same options, because these depend only on the folder.
  if(CMAKE_UNITY_BUILD AND NOT alone)
    # The name that CMake gives to the file of the group.
    set(source ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx)
    set_property(SOURCE ${source} PROPERTY COMPILE_OPTIONS ${options})
  else()
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
  endif()
endfunction()

# Makes a source file from cmake/<template>.cpp.in and adds the file to the target. @HASH@ is replaced by a hash of the
# given files and of the compiler flags. The hash is updated at each build. Results of different code have different
# hashes.
function(plumb_add_code_hash target template)
  list(SORT ARGN)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(list ${PROJECT_BINARY_DIR}/code_hash/${target}.txt)
  set(out ${PROJECT_BINARY_DIR}/code_hash/${target}.cpp)
  list(JOIN ARGN "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${PLUMB_SANITIZE} ${CMAKE_UNITY_BUILD} ${CMAKE_CUDA_COMPILER_VERSION} ${CMAKE_CUDA_ARCHITECTURES} ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${type}} oneDNN ${OneDnn_VERSION} Highway ${Highway_VERSION} fmt ${fmt_VERSION}\n${lines}\n")
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DLIST=${list} -DOUT=${out} -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/${template}.cpp.in -P ${PROJECT_SOURCE_DIR}/cmake/CodeHash.cmake
    DEPENDS ${list} ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/CodeHash.cmake ${PROJECT_SOURCE_DIR}/cmake/${template}.cpp.in
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Hashing the code of ${target}" VERBATIM)
  target_sources(${target} PRIVATE ${out})
  # The file changes often and includes one small header.
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Compiles files such as experiments/lab/report/page.css into the target. A function such as page_css() returns the
# bytes of a file. assets.h in the folder of the file declares the function. Paths are relative to the project.
function(plumb_embed target)
  foreach(file IN LISTS ARGN)
    set(out ${PROJECT_BINARY_DIR}/embedded/${file}.cpp)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake
      DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/EmbedFile.cmake
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Embedding ${file}" VERBATIM)
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()

# Compiles plumb/vision.h once for all programs that call this function. Reading the header takes most of the time of
# compiling a short program.
function(plumb_share_headers program)
  if(NOT TARGET plumb_program_headers)
    set(source ${PROJECT_BINARY_DIR}/program_headers.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(plumb_program_headers OBJECT EXCLUDE_FROM_ALL ${source})
    target_link_libraries(plumb_program_headers PRIVATE plumb::plumb)
    plumb_configure_target(plumb_program_headers)
    target_precompile_headers(plumb_program_headers PRIVATE <plumb/vision.h>)
  endif()
  target_precompile_headers(${program} REUSE_FROM plumb_program_headers)
endfunction()

# plumb_add_program(NAME SOURCE.. [CODE FILE..]): the code hash of the program covers the library, and the files of CODE
# or, by default, the sources with the headers beside them.
function(plumb_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" CODE)
  add_executable(${name} ${program_UNPARSED_ARGUMENTS})
  set(sources)
  foreach(source IN LISTS program_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH source)
    list(APPEND sources ${source})
    cmake_path(GET source PARENT_PATH folder)
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
    list(APPEND sources ${headers})
  endforeach()
  list(REMOVE_DUPLICATES sources)
  if(program_CODE)
    set(sources ${program_CODE})
  endif()
  plumb_add_code_hash(${name} program_code ${sources})
  target_link_libraries(${name} PRIVATE plumb::plumb)
  plumb_configure_target(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(PLUMB_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # builds with sanitizers make programs that a test runs
  endif()
endfunction()
