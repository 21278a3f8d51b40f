// The loss of a guess that knows nothing about the samples.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace plumb::lab {

// The chance level of a training loss. A loss near this level says that a network has learned nothing.
struct Chance {
  double loss = std::numeric_limits<double>::infinity();  // infinity: undefined, so that no loss is near chance
  std::string text = {};                                  // for reports, such as "ln 28 = 3.332"
  // Returns whether the chance level is defined.
  bool known() const { return loss < std::numeric_limits<double>::infinity(); }
};

// The chance level of the cross-entropy for this number of classes: ln(classes). Undefined for fewer than two classes.
Chance chance_of_classes(std::int64_t classes);

}  // namespace plumb::lab
