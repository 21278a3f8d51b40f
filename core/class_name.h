// The name of a class at run time.
#pragma once

#include <string>
#include <typeinfo>

namespace plumb {

// Returns the name of a class without namespaces and enclosing functions: class_name(typeid(layer)) is "Linear".
std::string class_name(const std::type_info& type);

}  // namespace plumb
