// What this program was built from.
#pragma once

namespace plumb::lab {

const char* version();  // "0.1.0"
const char* commit();   // "1f0c2d9a7b3e", or "unknown" outside a repository
const char* build();    // "Release, GNU 12.2.0"

}  // namespace plumb::lab
