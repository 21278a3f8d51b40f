// What this program was built from.
#pragma once

#include <string>

namespace plumb::lab {

const char* version();  // "0.1.0"
const char* commit();   // "1f0c2d9a7b3e", or "unknown" outside a repository
const char* build();    // "Release, GNU 12.2.0"

// A hash of the code that computes: the library's sources and flags as they were when it was built (uncommitted edits
// included, tests and docs not), and the program's own, or, where its build does not tell them, the bytes of the
// program.
std::string code_hash();
const char* library_code();               // the library's alone
void set_program_code(const char* code);  // told by plumb_add_program (cmake/PlumbTargets.cmake) before main

}  // namespace plumb::lab
