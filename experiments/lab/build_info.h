// Version, commit, build type and code hash of this program.
#pragma once

#include <string>

namespace plumb::lab {

const char* version();  // such as "0.1.0"
const char* commit();   // such as "1f0c2d9a7b3e"; "unknown" outside a repository
const char* build();    // build type and compiler: "Release, GNU 12.2.0"

// A hash of the code that decides the numbers of a trial: the sources and build flags of the library and of the program
// at build time. Uncommitted edits are included. The files that only name, judge, draw or print trials are not included
// (such as the rooms cli, plot, report, stats and study; CMakeLists.txt has the list), and neither are tests and docs.
// If the build does not provide the hash of the program's sources, code_hash() is a hash of the bytes of the program
// file.
std::string code_hash();
const char* library_code();  // the hash of the library's sources and flags only
// Sets the hash of the program's sources. Code that plumb_add_program() generates (cmake/PlumbTargets.cmake) calls
// set_program_code() before main().
void set_program_code(const char* code);

}  // namespace plumb::lab
