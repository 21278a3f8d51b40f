// A JSON value in interfaces. The package installs no JSON library, so headers that plumb/plumb.h reaches only declare
// JsonValue and do not include this header.
#pragma once

#include <nlohmann/json.hpp>

namespace plumb::lab {

// A JSON value, whose objects keep the order of their names.
struct JsonValue {
  nlohmann::ordered_json json = {};
  bool operator==(const JsonValue&) const = default;
};

}  // namespace plumb::lab
