// Version, commit, build type and code hash of this program.
#pragma once

#include <string>

namespace plumb::lab {

const char* version();  // "0.1.0"
const char* commit();   // "1f0c2d9a7b3e", or "unknown" outside a repository
const char* build();    // "Release, GNU 12.2.0"

// A hash of the code that computes results: the sources and build flags of the library and of the program at build
// time, including uncommitted edits, but without tests and docs. If the build does not provide the hash of the
// program's sources, code_hash() is a hash of the bytes of the program file.
std::string code_hash();
const char* library_code();  // the hash of the library's sources and flags only
// Sets the hash of the program's sources. Code that plumb_add_program generates (cmake/PlumbTargets.cmake) calls it
// before main.
void set_program_code(const char* code);

}  // namespace plumb::lab
